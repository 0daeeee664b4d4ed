//! The few functions of WASI preview 1 that a flight needs, imported without a libc.

use crate::guest::EXIT_PANIC;

const STDIN: u32 = 0;
const STDOUT: u32 = 1;
const STDERR: u32 = 2;
/// How much is read at once.
const CHUNK: usize = 16 << 10;

#[repr(C)]
struct Iovec {
    address: *const u8,
    length: usize,
}

#[allow(unsafe_code, reason = "imports are unsafe by nature; the calls are below")]
#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn fd_read(fd: u32, iovs: *const Iovec, count: usize, read: *mut usize) -> u32;
    fn fd_write(fd: u32, iovs: *const Iovec, count: usize, written: *mut usize) -> u32;
    fn args_sizes_get(count: *mut usize, size: *mut usize) -> u32;
    fn args_get(table: *mut *mut u8, buffer: *mut u8) -> u32;
    fn environ_sizes_get(count: *mut usize, size: *mut usize) -> u32;
    fn environ_get(table: *mut *mut u8, buffer: *mut u8) -> u32;
    fn proc_exit(code: i32) -> !;
}

/// Everything on stdin.
pub fn read_stdin() -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let start = all.len();
        all.resize(start + CHUNK, 0);
        let rest = all.get_mut(start..).unwrap_or_default();
        let iovec = Iovec { address: rest.as_mut_ptr(), length: rest.len() };
        let mut read = 0;
        #[allow(unsafe_code, reason = "a call of the host")]
        // SAFETY: the host writes at most `length` bytes at `address`, which is ours, and `read`.
        let errno = unsafe { fd_read(STDIN, &raw const iovec, 1, &raw mut read) };
        all.truncate(start + read.min(CHUNK));
        if errno != 0 || read == 0 {
            return all;
        }
    }
}

/// Prints bytes, all of them. A host with an output limit does not return from here if they are
/// too many.
pub fn write_stdout(bytes: &[u8]) {
    if !write(STDOUT, bytes) {
        write(STDERR, b"the host does not take the output\n");
        exit(EXIT_PANIC);
    }
}

/// Writes a line to the log, stderr.
pub fn log(line: &str) {
    write_stderr(format!("{line}\n").as_bytes());
}

/// Writes bytes to the log, stderr.
pub fn write_stderr(bytes: &[u8]) {
    // There is nowhere to say that the log is gone.
    write(STDERR, bytes);
}

fn write(fd: u32, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let iovec = Iovec { address: bytes.as_ptr(), length: bytes.len() };
        let mut written = 0;
        #[allow(unsafe_code, reason = "a call of the host")]
        // SAFETY: the host reads `length` bytes at `address`, which are borrowed, and writes `written`.
        let errno = unsafe { fd_write(fd, &raw const iovec, 1, &raw mut written) };
        if errno != 0 || written == 0 {
            return false;
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    true
}

/// Ends the flight. 0 is success.
pub fn exit(code: i32) -> ! {
    #[allow(unsafe_code, reason = "a call of the host")]
    // SAFETY: it takes a number and does not return.
    unsafe {
        proc_exit(code)
    }
}

/// The arguments, the release's name first.
pub fn args() -> Vec<String> {
    #[allow(unsafe_code, reason = "calls of the host")]
    // SAFETY: `strings` gives the functions the memory that their contract asks for.
    strings(
        |count, size| unsafe { args_sizes_get(count, size) },
        |table, buffer| unsafe { args_get(table, buffer) },
    )
}

/// The value of an environment variable, if it is set.
pub fn env(name: &str) -> Option<String> {
    #[allow(unsafe_code, reason = "calls of the host")]
    // SAFETY: as in `args`.
    let all = strings(
        |count, size| unsafe { environ_sizes_get(count, size) },
        |table, buffer| unsafe { environ_get(table, buffer) },
    );
    all.iter()
        .find_map(|entry| entry.split_once('=').filter(|(key, _)| *key == name))
        .map(|(_, value)| value.to_owned())
}

/// Reads NUL-terminated strings: first how many and how long together, then a table of addresses
/// and a buffer, filled one after the other. Those that are not UTF-8 become so.
fn strings(
    sizes: impl Fn(*mut usize, *mut usize) -> u32,
    get: impl Fn(*mut *mut u8, *mut u8) -> u32,
) -> Vec<String> {
    let (mut count, mut size) = (0, 0);
    if sizes(&raw mut count, &raw mut size) != 0 || count == 0 {
        return Vec::new();
    }
    let mut table = vec![std::ptr::null_mut(); count];
    let mut buffer = vec![0u8; size];
    if get(table.as_mut_ptr(), buffer.as_mut_ptr()) != 0 {
        return Vec::new();
    }
    buffer.split(|byte| *byte == 0).take(count).map(|s| String::from_utf8_lossy(s).into_owned()).collect()
}
