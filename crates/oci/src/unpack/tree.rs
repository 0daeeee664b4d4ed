use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, mkdirat, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;

use super::meta::Meta;

/// The tree under construction.
///
/// Every path is resolved by the kernel with the tree as its root (`openat2`, `RESOLVE_IN_ROOT`), so a link
/// leads nowhere else, whatever it says. Every directory was made here, stays ours alone (0700) until the end,
/// and is known with its depth and what will be set on it.
pub(crate) struct Tree {
    root: Dir,
    dirs: HashMap<u64, DirInfo>,
    /// What the current layer made: keyed hashes of (directory, name).
    made: HashSet<u64>,
    hasher: RandomState,
    last: Option<(Vec<u8>, Dir)>,
    max_depth: u32,
}

pub(crate) struct DirInfo {
    pub meta: Meta,
    depth: u32,
}

/// An open directory of the tree and its number.
#[derive(Clone)]
pub(crate) struct Dir {
    pub fd: Rc<OwnedFd>,
    pub ino: u64,
}

/// What stops an entry: its own fault, or the system's answer.
pub(crate) enum Stop {
    Entry(String),
    System(Errno),
}

impl From<Errno> for Stop {
    fn from(e: Errno) -> Self {
        Self::System(e)
    }
}

pub(crate) fn entry<T>(problem: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Entry(problem.into()))
}

const HOW: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RWXU;
/// How often a resolution is repeated that the kernel says was disturbed by a rename elsewhere.
const MAX_RETRIES: usize = 64;

pub(crate) fn is_dir(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

impl Tree {
    pub(crate) fn new(root: OwnedFd, max_depth: u32) -> rustix::io::Result<Self> {
        let ino = rustix::fs::fstat(&root)?.st_ino;
        let root = Dir { fd: Rc::new(root), ino };
        let dirs = HashMap::from([(ino, DirInfo { meta: Meta::implicit(), depth: 0 })]);
        Ok(Self { root, dirs, made: HashSet::new(), hasher: RandomState::new(), last: None, max_depth })
    }

    pub(crate) fn root(&self) -> Dir {
        self.root.clone()
    }

    /// Begins a layer: what the ones before made can now be hidden.
    pub(crate) fn begin_layer(&mut self) {
        self.made = HashSet::new();
    }

    pub(crate) fn set_meta(&mut self, dir: u64, meta: Meta) {
        if let Some(info) = self.dirs.get_mut(&dir) {
            info.meta = meta;
        }
    }

    pub(crate) fn mark(&mut self, dir: u64, name: &[u8]) {
        self.made.insert(self.hasher.hash_one((dir, name)));
    }

    fn is_marked(&self, dir: u64, name: &[u8]) -> bool {
        self.made.contains(&self.hasher.hash_one((dir, name)))
    }

    fn open(&self, path: &[u8]) -> rustix::io::Result<Dir> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let mut tries = 0;
        let fd = loop {
            match openat2(&self.root.fd, path, HOW, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tries < MAX_RETRIES => tries += 1,
                other => break other?,
            }
        };
        let ino = rustix::fs::fstat(&fd)?.st_ino;
        Ok(Dir { fd: Rc::new(fd), ino })
    }

    /// The directory that `parts` lead to, following links within the tree. Missing ones are made where
    /// `create` says so; without it, `None` is the answer.
    pub(crate) fn dir(&mut self, parts: &[&[u8]], create: bool) -> Result<Option<Dir>, Stop> {
        if parts.is_empty() {
            return Ok(Some(self.root()));
        }
        let path = parts.join(&b'/');
        if let Some((last, dir)) = &self.last
            && *last == path
        {
            return Ok(Some(dir.clone()));
        }
        let dir = match self.open(&path) {
            Ok(dir) => dir,
            Err(Errno::NOENT) if create => self.create(parts)?,
            Err(Errno::NOENT | Errno::NOTDIR) if !create => return Ok(None),
            Err(e) => return Err(unresolved(e)),
        };
        self.last = Some((path, dir.clone()));
        Ok(Some(dir))
    }

    fn create(&mut self, parts: &[&[u8]]) -> Result<Dir, Stop> {
        let mut at = self.root();
        for n in 1..=parts.len() {
            let (before, name) = (&parts[..n], parts[n - 1]);
            at = match self.open(&before.join(&b'/')) {
                Ok(dir) => dir,
                Err(Errno::NOENT) => self.make(&at, name)?,
                Err(e) => return Err(unresolved(e)),
            };
        }
        Ok(at)
    }

    /// Makes a directory with the metadata of one that nobody described.
    pub(crate) fn make(&mut self, parent: &Dir, name: &[u8]) -> Result<Dir, Stop> {
        let depth = self.dirs.get(&parent.ino).map_or(0, |d| d.depth) + 1;
        if depth > self.max_depth {
            return entry(format!("a directory deeper than {} levels (MAX_DEPTH)", self.max_depth));
        }
        match mkdirat(&parent.fd, name, PRIVATE) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                return entry("the path leads through a link to something that is not there");
            }
            Err(e) => return Err(e.into()),
        }
        let dir = self.child(parent, name)?;
        self.dirs.insert(dir.ino, DirInfo { meta: Meta::implicit(), depth });
        self.mark(parent.ino, name);
        Ok(dir)
    }

    /// The directory `name` of `parent`, not through a link.
    pub(crate) fn child(&self, parent: &Dir, name: &[u8]) -> Result<Dir, Stop> {
        let fd = openat(&parent.fd, name, HOW | OFlags::NOFOLLOW, Mode::empty())?;
        let ino = rustix::fs::fstat(&fd)?.st_ino;
        Ok(Dir { fd: Rc::new(fd), ino })
    }

    pub(crate) fn stat(&self, dir: &Dir, name: &[u8]) -> rustix::io::Result<Option<Stat>> {
        match statat(&dir.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Removes what has this name, with everything in it.
    pub(crate) fn remove(&mut self, dir: &Dir, name: &[u8]) -> Result<(), Stop> {
        self.last = None;
        let Some(stat) = self.stat(dir, name)? else { return Ok(()) };
        if is_dir(&stat) {
            let child = self.child(dir, name)?;
            for name in list(&child)? {
                self.remove(&child, &name)?;
            }
            unlinkat(&dir.fd, name, AtFlags::REMOVEDIR)?;
            self.dirs.remove(&stat.st_ino);
        } else {
            unlinkat(&dir.fd, name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Hides what lower layers have under this name: removes it, except for what this layer made. The answer is
    /// whether nothing is left of it.
    pub(crate) fn hide(&mut self, dir: &Dir, name: &[u8]) -> Result<bool, Stop> {
        self.last = None;
        let Some(stat) = self.stat(dir, name)? else { return Ok(true) };
        let made = self.is_marked(dir.ino, name);
        if !is_dir(&stat) {
            if !made {
                unlinkat(&dir.fd, name, AtFlags::empty())?;
            }
            return Ok(!made);
        }
        let child = self.child(dir, name)?;
        let empty = self.hide_children(&child)?;
        if made {
            return Ok(false);
        }
        if empty {
            unlinkat(&dir.fd, name, AtFlags::REMOVEDIR)?;
            self.dirs.remove(&stat.st_ino);
        } else {
            // The lower directory is gone; what is left is the one that this layer's entries need.
            self.set_meta(stat.st_ino, Meta::implicit());
        }
        Ok(empty)
    }

    /// Hides everything that lower layers have in a directory.
    pub(crate) fn hide_children(&mut self, dir: &Dir) -> Result<bool, Stop> {
        let mut empty = true;
        for name in list(dir)? {
            empty &= self.hide(dir, &name)?;
        }
        Ok(empty)
    }

    /// Sets what was put off: the metadata of all directories, the deepest first.
    pub(crate) fn finish(&self, keep_owner: bool) -> Result<u64, Stop> {
        self.finish_dir(&self.root, keep_owner)
    }

    fn finish_dir(&self, dir: &Dir, keep_owner: bool) -> Result<u64, Stop> {
        let open = openat(&dir.fd, ".", LIST, Mode::empty())?;
        let mut dropped = 0;
        for item in rustix::fs::Dir::read_from(&open)? {
            let item = item?;
            let name = item.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let directory = match item.file_type() {
                FileType::Directory => true,
                FileType::Unknown => self.stat(dir, name)?.is_some_and(|s| is_dir(&s)),
                _ => false,
            };
            if directory {
                dropped += self.finish_dir(&self.child(dir, name)?, keep_owner)?;
            }
        }
        match self.dirs.get(&dir.ino) {
            Some(info) => Ok(dropped + info.meta.set(&open, keep_owner)?),
            None => Ok(dropped),
        }
    }
}

fn unresolved(e: Errno) -> Stop {
    match e {
        Errno::NOTDIR => Stop::Entry("the path leads through something that is not a directory".to_owned()),
        Errno::LOOP => Stop::Entry("the path leads through a loop of links".to_owned()),
        Errno::NAMETOOLONG => Stop::Entry("the path is too long once links are followed".to_owned()),
        Errno::XDEV => Stop::Entry("the path leads to another file system".to_owned()),
        Errno::NOENT => {
            Stop::Entry("the path leads through a link to something that is not there".to_owned())
        }
        e => Stop::System(e),
    }
}

/// The names in a directory, collected so that they can be removed.
fn list(dir: &Dir) -> rustix::io::Result<Vec<Vec<u8>>> {
    let open = openat(&dir.fd, ".", LIST, Mode::empty())?;
    let mut names = Vec::new();
    for item in rustix::fs::Dir::read_from(&open)? {
        let name = item?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}
