use std::any::Any;
use std::fmt::Display;
use std::path::Path;

use crate::store::StoreError;

const RESTORE: &str = "the file is left as it is; move it away and put a backup in its place";

/// What is wrong with a file, and what to do about it.
pub(super) fn broken(file: &Path, reason: impl Display, remedy: &str) -> StoreError {
    StoreError::Broken { file: file.to_owned(), reason: reason.to_string(), remedy: remedy.to_owned() }
}

/// The file holds something that no store has written.
pub(super) fn damaged(file: &Path, reason: impl Display) -> StoreError {
    broken(file, reason, RESTORE)
}

/// The system refused an operation on the file.
pub(super) fn io(file: &Path, error: &std::io::Error) -> StoreError {
    broken(file, error, "see to the disk and the rights of the directory, then start again")
}

/// The database refused to open.
pub(super) fn open(file: &Path, error: redb::DatabaseError) -> StoreError {
    use redb::{DatabaseError, StorageError};
    match error {
        DatabaseError::DatabaseAlreadyOpen => broken(
            file,
            "another process has it open",
            "stop that process, or give this one a data directory of its own",
        ),
        DatabaseError::UpgradeRequired(version) => broken(
            file,
            format_args!("it has the old database format {version}"),
            "open it with the version that wrote it and make a backup there",
        ),
        DatabaseError::Storage(StorageError::Io(error))
            if error.kind() == std::io::ErrorKind::InvalidData =>
        {
            damaged(file, format_args!("it is not a store ({error})"))
        }
        DatabaseError::Storage(StorageError::Io(error))
            if error.kind() != std::io::ErrorKind::UnexpectedEof =>
        {
            io(file, &error)
        }
        error => damaged(file, error),
    }
}

/// The database panicked over what it read.
pub(super) fn panicked(file: &Path, panic: &(dyn Any + Send)) -> StoreError {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    damaged(file, format_args!("it is damaged ({})", said.unwrap_or("the database gave no reason")))
}
