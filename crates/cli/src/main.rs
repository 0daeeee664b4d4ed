//! The `horchestra` command.
fn main() {}
