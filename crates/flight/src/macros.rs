//! The one line that makes a program of a function, and its log.

/// Makes a flight of an `async fn(&T, &Cluster) -> Result<DesiredState>`: the whole WebAssembly
/// program, from stdin to stdout. Natively it expands to nothing.
///
/// With several functions the flight serves several kinds, and calls the one for the kind of the
/// resource it is given.
///
/// The crate needs `crate-type = ["cdylib"]` (and `"rlib"`, for its tests and to be embedded).
///
/// With the feature `web` the module is for pages and Node instead: it exports
/// `evaluate(resource, objects)` by wasm-bindgen, JSON in and JSON out.
#[cfg(not(feature = "web"))]
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

/// Makes a module for pages and Node of an `async fn(&T, &Cluster) -> Result<DesiredState>`; without
/// the feature `web` it makes a flight. Natively it expands to nothing.
#[cfg(feature = "web")]
#[macro_export]
macro_rules! main {
    ($($function:path),+ $(,)?) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            use $crate::wasm_bindgen;

            /// Evaluates once; `objects` is what the flight can read.
            #[wasm_bindgen::prelude::wasm_bindgen]
            pub fn evaluate(
                resource: &str,
                objects: Option<String>,
            ) -> ::std::result::Result<String, wasm_bindgen::JsError> {
                $crate::web::evaluate(&[$(&$crate::reconciler($function)),+], resource, &objects.unwrap_or_default())
                    .map_err(|e| wasm_bindgen::JsError::new(&e.to_string()))
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
    #[cfg(all(target_family = "wasm", not(feature = "web")))]
    crate::guest::log(line);
    #[cfg(all(target_family = "wasm", feature = "web"))]
    let _ = line;
    #[cfg(not(target_family = "wasm"))]
    eprintln!("{line}");
}
