//! The code of README and book as doctests.

macro_rules! doctest {
    ($($name:ident: $path:literal),+ $(,)?) => {
        $(
            #[doc = include_str!($path)]
            pub struct $name;
        )+
    };
}

doctest! {
    Readme: "../../README.md",
    First: "../../book/src/first.md",
    Flight: "../../book/src/flight.md",
    Wait: "../../book/src/wait.md",
}
