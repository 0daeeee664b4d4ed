//! All functions of WASI preview 1 with their types, once for both engines.

/// The import module of WASI preview 1.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";

/// Calls a macro with every function that answers an error number: its name and parameters, and
/// for one without a file or socket to work on, the error that an open stream gets. `proc_exit`
/// alone has no result and is not in the list.
macro_rules! for_each_wasi_function {
    ($define:ident) => {
        $define! {
            args_get(table: u32, buffer: u32);
            args_sizes_get(count: u32, size: u32);
            environ_get(table: u32, buffer: u32);
            environ_sizes_get(count: u32, size: u32);
            clock_res_get(id: u32, out: u32);
            clock_time_get(id: u32, precision: u64, out: u32);
            fd_advise(fd: u32, offset: u64, length: u64, advice: u32) = SPIPE;
            fd_allocate(fd: u32, offset: u64, length: u64) = SPIPE;
            fd_close(fd: u32);
            fd_datasync(fd: u32) = SUCCESS;
            fd_fdstat_get(fd: u32, out: u32);
            fd_fdstat_set_flags(fd: u32, flags: u32) = SUCCESS;
            fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64) = SUCCESS;
            fd_filestat_get(fd: u32, out: u32);
            fd_filestat_set_size(fd: u32, size: u64) = INVAL;
            fd_filestat_set_times(fd: u32, accessed: u64, modified: u64, flags: u32) = NOTSUP;
            fd_pread(fd: u32, iovs: u32, count: u32, offset: u64, out: u32) = SPIPE;
            fd_prestat_get(fd: u32, out: u32) = BADF;
            fd_prestat_dir_name(fd: u32, path: u32, length: u32) = BADF;
            fd_pwrite(fd: u32, iovs: u32, count: u32, offset: u64, out: u32) = SPIPE;
            fd_read(fd: u32, iovs: u32, count: u32, out: u32);
            fd_readdir(fd: u32, buffer: u32, length: u32, cookie: u64, out: u32) = NOTDIR;
            fd_renumber(fd: u32, to: u32) = NOTSUP;
            fd_seek(fd: u32, offset: u64, whence: u32, out: u32) = SPIPE;
            fd_sync(fd: u32) = SUCCESS;
            fd_tell(fd: u32, out: u32) = SPIPE;
            fd_write(fd: u32, iovs: u32, count: u32, out: u32);
            path_create_directory(fd: u32, path: u32, length: u32) = NOTDIR;
            path_filestat_get(fd: u32, flags: u32, path: u32, length: u32, out: u32) = NOTDIR;
            path_filestat_set_times(
                fd: u32, flags: u32, path: u32, length: u32, accessed: u64, modified: u64, which: u32
            ) = NOTDIR;
            path_link(fd: u32, flags: u32, path: u32, length: u32, to: u32, to_path: u32, to_length: u32) = NOTDIR;
            path_open(
                fd: u32, dirflags: u32, path: u32, length: u32, oflags: u32, base: u64, inheriting: u64,
                fdflags: u32, out: u32
            ) = NOTDIR;
            path_readlink(fd: u32, path: u32, length: u32, buffer: u32, size: u32, out: u32) = NOTDIR;
            path_remove_directory(fd: u32, path: u32, length: u32) = NOTDIR;
            path_rename(fd: u32, path: u32, length: u32, to: u32, to_path: u32, to_length: u32) = NOTDIR;
            path_symlink(target: u32, target_length: u32, fd: u32, path: u32, length: u32) = BADF;
            path_unlink_file(fd: u32, path: u32, length: u32) = NOTDIR;
            poll_oneoff(subscriptions: u32, events: u32, count: u32, out: u32);
            proc_raise(signal: u32) = NOSYS;
            random_get(out: u32, length: u32);
            sched_yield();
            sock_accept(fd: u32, flags: u32, out: u32) = NOTSOCK;
            sock_recv(fd: u32, iovs: u32, count: u32, flags: u32, out: u32, out_flags: u32) = NOTSOCK;
            sock_send(fd: u32, iovs: u32, count: u32, flags: u32, out: u32) = NOTSOCK;
            sock_shutdown(fd: u32, how: u32) = NOTSOCK;
        }
    };
}
pub(crate) use for_each_wasi_function;

/// One call of a function of the list above.
macro_rules! wasi_call {
    (sched_yield($session:expr, $guest:expr) ()) => {{
        let _ = $guest;
        $session.remaining().map(|_| $crate::wasi::Errno::SUCCESS)
    }};
    (proc_raise($session:expr, $guest:expr) ($signal:ident) = $errno:ident) => {{
        let _ = ($session, $guest, $signal);
        Ok($crate::wasi::Errno::$errno)
    }};
    ($name:ident($session:expr, $guest:expr) ($($arg:ident)*)) => {
        $crate::wasi::functions::$name($session, $guest, ($($arg,)*))
    };
    ($name:ident($session:expr, $guest:expr) ($fd:ident $($arg:ident)*) = $errno:ident) => {{
        let _ = ($guest, $($arg),*);
        $crate::wasi::refuse($session, $fd, $crate::wasi::Errno::$errno)
    }};
}
pub(crate) use wasi_call;

macro_rules! signatures {
    ($($name:ident ( $($arg:ident : $ty:ident),* $(,)? ) $(= $errno:ident)? ;)*) => {
        /// The functions that answer an error number, with the types of their parameters.
        const FUNCTIONS: &[(&str, &[Param])] = &[$((stringify!($name), &[$(Param::$ty),*])),*];
    };
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "the names of the types in the list above")]
pub(crate) enum Param {
    u32,
    u64,
}

for_each_wasi_function!(signatures);

/// The parameters of a function of WASI preview 1, and whether it has a result.
pub(crate) fn signature(name: &str) -> Option<(&'static [Param], bool)> {
    if name == "proc_exit" {
        return Some((&[Param::u32], false));
    }
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, params)| (*params, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list in the `witx` file of the snapshot has 46 functions, with `proc_exit`.
    #[test]
    fn the_snapshot_is_complete() {
        assert_eq!(FUNCTIONS.len() + 1, 46);
    }
}
