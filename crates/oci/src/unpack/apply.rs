use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chownat, linkat, makedev, mknodat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::meta::Meta;
use super::name::{Name, components};
use super::run::{Options, Owners, Report};
use super::tree::{Dir, Stop, Tree, entry as refuse, is_dir};
use crate::tarball::{Entry, Kind, Reader};

/// Why an entry could not be applied.
pub(crate) enum Failure {
    Entry(String),
    Read(std::io::Error),
    Write(std::io::Error),
    TooLarge,
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Entry(problem) => Self::Entry(problem),
            Stop::System(e) => Self::Write(e.into()),
        }
    }
}

impl From<Errno> for Failure {
    fn from(e: Errno) -> Self {
        Self::Write(e.into())
    }
}

/// Applies entries to the tree, and counts.
pub(crate) struct Applier<'a> {
    pub tree: Tree,
    pub options: &'a Options,
    pub report: Report,
    pub privileged: bool,
}

const COPY_BUFFER: usize = 64 << 10;

impl Applier<'_> {
    pub(crate) fn apply<R: Read>(&mut self, entry: &Entry, reader: &mut Reader<R>) -> Result<(), Failure> {
        match Name::parse(&entry.path).map_err(Failure::Entry)? {
            Name::Bookkeeping => Ok(()),
            Name::Root => self.root(entry),
            Name::Opaque(parents) => {
                marker(entry)?;
                if let Some(dir) = self.tree.dir(&parents, false)? {
                    self.tree.hide_children(&dir)?;
                }
                Ok(())
            }
            Name::Whiteout(parents, target) => {
                marker(entry)?;
                if let Some(dir) = self.tree.dir(&parents, false)? {
                    self.tree.hide(&dir, target)?;
                }
                Ok(())
            }
            Name::Node(parents, name) => self.node(entry, &parents, name, reader),
        }
    }

    fn keep_owner(&self) -> bool {
        self.options.owners == Owners::Keep
    }

    fn meta(&mut self, entry: &Entry) -> Meta {
        let (meta, dropped) = Meta::of(entry, self.privileged);
        self.report.xattrs_dropped += dropped;
        meta
    }

    fn root(&mut self, entry: &Entry) -> Result<(), Failure> {
        if entry.kind != Kind::Dir {
            return Err(Failure::Entry("the root directory can only be a directory".to_owned()));
        }
        let meta = self.meta(entry);
        let root = self.tree.root().ino;
        self.tree.set_meta(root, meta);
        Ok(())
    }

    fn node<R: Read>(
        &mut self,
        entry: &Entry,
        parents: &[&[u8]],
        name: &[u8],
        reader: &mut Reader<R>,
    ) -> Result<(), Failure> {
        // Looked at before anything changes, so that a bad link leaves what was there alone.
        let source = if entry.kind == Kind::HardLink { Some(self.link_source(entry)?) } else { None };
        let Some(dir) = self.tree.dir(parents, true)? else { return Ok(()) };
        if let Some((from, target)) = &source
            && from.ino == dir.ino
            && target == name
        {
            return Err(Failure::Entry("a hard link to itself".to_owned()));
        }
        let there = self.tree.stat(&dir, name)?;
        if there.as_ref().is_some_and(|stat| !(is_dir(stat) && entry.kind == Kind::Dir)) {
            if source.as_ref().is_some() && there.as_ref().is_some_and(is_dir) {
                self.link_survives(&dir, name, source.as_ref())?;
            }
            self.tree.remove(&dir, name)?;
        }
        match &entry.kind {
            Kind::Dir => self.directory(entry, &dir, name)?,
            Kind::File => self.file(entry, None, &dir, name, reader)?,
            Kind::Sparse(segments) => self.file(entry, Some(segments), &dir, name, reader)?,
            Kind::Symlink => self.symlink(entry, &dir, name)?,
            Kind::HardLink => {
                if let Some((from, target)) = &source {
                    linkat(&from.fd, target.as_slice(), &dir.fd, name, AtFlags::empty())?;
                }
            }
            Kind::Fifo => self.special(entry, FileType::Fifo, &dir, name)?,
            Kind::CharDevice => self.special(entry, FileType::CharacterDevice, &dir, name)?,
            Kind::BlockDevice => self.special(entry, FileType::BlockDevice, &dir, name)?,
        }
        self.tree.mark(dir.ino, name);
        Ok(())
    }

    /// Where a hard link points: an existing thing of the tree that is not a directory, found without following
    /// a link at the end.
    fn link_source(&mut self, entry: &Entry) -> Result<(Dir, Vec<u8>), Stop> {
        let parts = components(&entry.link).or_else(|p| refuse(format!("hard link: {p}")))?;
        let Some((name, parents)) = parts.split_last() else {
            return refuse("a hard link to the root directory");
        };
        let missing = "a hard link to something that is not there (before it, in this layer or a lower one)";
        let Some(dir) = self.tree.dir(parents, false)? else { return refuse(missing) };
        match self.tree.stat(&dir, name)? {
            None => refuse(missing),
            Some(stat) if is_dir(&stat) => refuse("a hard link to a directory"),
            Some(_) => Ok((dir, name.to_vec())),
        }
    }

    /// A hard link that replaces the directory which holds its own target would lose both.
    fn link_survives(&self, dir: &Dir, name: &[u8], source: Option<&(Dir, Vec<u8>)>) -> Result<(), Stop> {
        let victim = self.tree.child(dir, name)?;
        let mut at = match source {
            Some((from, _)) => from.clone(),
            None => return Ok(()),
        };
        // Upwards from the target to the root; the tree's depth is bounded.
        for _ in 0..=self.options.limits.depth {
            if at.ino == victim.ino {
                return refuse("a hard link in the place of the directory that holds its target");
            }
            if at.ino == self.tree.root().ino {
                break;
            }
            at = self.tree.child(&at, b"..")?;
        }
        Ok(())
    }

    fn directory(&mut self, entry: &Entry, dir: &Dir, name: &[u8]) -> Result<(), Failure> {
        let made = match self.tree.stat(dir, name)? {
            Some(_) => self.tree.child(dir, name)?,
            None => self.tree.make(dir, name)?,
        };
        let meta = self.meta(entry);
        self.tree.set_meta(made.ino, meta);
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        entry: &Entry,
        segments: Option<&[(u64, u64)]>,
        dir: &Dir,
        name: &[u8],
        reader: &mut Reader<R>,
    ) -> Result<(), Failure> {
        let left = self.options.limits.unpacked_bytes.saturating_sub(self.report.bytes);
        if entry.size > left {
            return Err(Failure::TooLarge);
        }
        self.report.bytes += entry.size;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&dir.fd, name, flags, Mode::RUSR | Mode::WUSR)?);
        match segments {
            None => copy(reader, &mut file, entry.size)?,
            Some(segments) => {
                for (offset, length) in segments {
                    file.seek(SeekFrom::Start(*offset)).map_err(Failure::Write)?;
                    copy(reader, &mut file, *length)?;
                }
                file.set_len(entry.size).map_err(Failure::Write)?;
            }
        }
        let meta = self.meta(entry);
        self.report.xattrs_dropped += meta.set(&file, self.keep_owner())?;
        self.report.files += 1;
        Ok(())
    }

    fn symlink(&mut self, entry: &Entry, dir: &Dir, name: &[u8]) -> Result<(), Failure> {
        if entry.link.is_empty() || entry.link.contains(&0) {
            return Err(Failure::Entry("a symbolic link to nowhere".to_owned()));
        }
        symlinkat(entry.link.as_slice(), &dir.fd, name)?;
        self.own(entry, dir, name)?;
        Ok(())
    }

    fn special(&mut self, entry: &Entry, kind: FileType, dir: &Dir, name: &[u8]) -> Result<(), Failure> {
        let device = kind != FileType::Fifo;
        if device && !(self.options.devices && self.privileged) {
            self.report.devices_skipped += 1;
            return Ok(());
        }
        let number = if device { makedev(entry.device.0, entry.device.1) } else { 0 };
        let mode = Mode::from_raw_mode(entry.mode);
        mknodat(&dir.fd, name, kind, Mode::RUSR | Mode::WUSR, number)?;
        self.own(entry, dir, name)?;
        // It was made a moment ago in a directory that is ours alone, so this cannot follow a link.
        rustix::fs::chmodat(&dir.fd, name, mode, AtFlags::empty())?;
        Ok(())
    }

    /// Owner and time of what is not opened.
    fn own(&mut self, entry: &Entry, dir: &Dir, name: &[u8]) -> Result<(), Failure> {
        let (meta, _) = Meta::of(entry, self.privileged);
        // No attribute that is kept can be set on these.
        self.report.xattrs_dropped += entry.xattrs.len() as u64;
        if self.keep_owner() {
            let (uid, gid) = meta.owner();
            chownat(&dir.fd, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        utimensat(&dir.fd, name, &meta.times(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }
}

/// A whiteout is an empty file. AUFS makes it a hard link to one of its own.
fn marker(entry: &Entry) -> Result<(), Failure> {
    match entry.kind {
        Kind::File if entry.size == 0 => Ok(()),
        Kind::HardLink => Ok(()),
        _ => Err(Failure::Entry("a whiteout that is not an empty file".to_owned())),
    }
}

fn copy<R: Read>(reader: &mut Reader<R>, file: &mut File, mut left: u64) -> Result<(), Failure> {
    let mut buffer = vec![0u8; usize::try_from(left).unwrap_or(COPY_BUFFER).clamp(1, COPY_BUFFER)];
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(COPY_BUFFER).min(buffer.len());
        let n = match reader.read_data(buffer.get_mut(..len).unwrap_or_default()) {
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Failure::Read(e)),
        };
        if n == 0 {
            return Err(Failure::Entry("less data than the entry's size".to_owned()));
        }
        file.write_all(buffer.get(..n).unwrap_or_default()).map_err(Failure::Write)?;
        left -= n as u64;
    }
    Ok(())
}
