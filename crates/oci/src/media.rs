use std::fmt;

/// The media types that are understood, OCI's and Docker's names for the same things as one value each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MediaType {
    /// An index of manifests.
    Index,
    /// A manifest of an image or an artifact.
    Manifest,
    /// An image's configuration.
    Config,
    /// A layer as a plain tar archive.
    LayerTar,
    /// A layer as a gzip-compressed tar archive.
    LayerGzip,
    /// A layer as a zstd-compressed tar archive.
    LayerZstd,
    /// The configuration of a flight artifact (Yoke's contract).
    FlightConfig,
    /// A flight's module, gzip-compressed (Yoke's contract).
    FlightModule,
    /// Anything else.
    Other(String),
}

pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER_TAR: &str = "application/vnd.oci.image.layer.v1.tar";
pub(crate) const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(crate) const LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
pub(crate) const FLIGHT_CONFIG: &str = "application/vnd.yoke.config.v1+json";
pub(crate) const FLIGHT_MODULE: &str = "application/vnd.yoke.wasm.gzip";

impl From<&str> for MediaType {
    fn from(text: &str) -> Self {
        match text {
            INDEX | "application/vnd.docker.distribution.manifest.list.v2+json" => Self::Index,
            MANIFEST | "application/vnd.docker.distribution.manifest.v2+json" => Self::Manifest,
            CONFIG | "application/vnd.docker.container.image.v1+json" => Self::Config,
            LAYER_TAR | "application/vnd.docker.image.rootfs.diff.tar" => Self::LayerTar,
            LAYER_GZIP | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Self::LayerGzip,
            LAYER_ZSTD | "application/vnd.docker.image.rootfs.diff.tar.zstd" => Self::LayerZstd,
            FLIGHT_CONFIG => Self::FlightConfig,
            FLIGHT_MODULE => Self::FlightModule,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => INDEX,
            Self::Manifest => MANIFEST,
            Self::Config => CONFIG,
            Self::LayerTar => LAYER_TAR,
            Self::LayerGzip => LAYER_GZIP,
            Self::LayerZstd => LAYER_ZSTD,
            Self::FlightConfig => FLIGHT_CONFIG,
            Self::FlightModule => FLIGHT_MODULE,
            Self::Other(other) => other,
        })
    }
}
