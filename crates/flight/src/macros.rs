//! The one line that makes a program of a function, and its log.

/// Makes a flight of an `async fn(&T, &Cluster) -> Result<DesiredState>`: the whole WebAssembly
/// program, from stdin to stdout. Natively it expands to nothing.
///
/// With several functions the flight serves several kinds, and calls the one for the kind of the
/// resource it is given.
///
/// The crate needs `crate-type = ["cdylib"]` (and `"rlib"`, for its tests and to be embedded).
#[macro_export]
macro_rules! main {
    ($($function:path),+ $(,)?) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn _start() {
                $crate::entry::start(&[$(&$crate::reconciler($function)),+]);
            }
        };
    };
}

/// Writes a line to stderr, the log of a flight. (`println!` and `eprintln!` go nowhere on
/// `wasm32-unknown-unknown`.)
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => { $crate::log_line(&::std::format!($($arg)*)) };
}

/// Writes a line to stderr; see [`log!`](crate::log).
#[doc(hidden)]
pub fn log_line(line: &str) {
    #[cfg(target_family = "wasm")]
    crate::guest::log(line);
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{line}");
}
