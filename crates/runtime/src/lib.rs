//! Drives Horchestra's reconcilers on tokio: watches, caches, workers, apply, metrics, replay.
