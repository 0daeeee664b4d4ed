//! Accepting connections: TLS, then HTTP/1.1 or HTTP/2 as the client prefers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::handler::Handler;
use crate::auth::Authenticator;
use crate::user::User;

/// After `accept` failed (too many open files), so that it is not tried in a tight loop.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A listening socket with what answers its connections.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    pub(crate) handler: Arc<Handler>,
}

impl Listener {
    /// Serves until the handler's token is done, then lets connections finish, for a while.
    pub(crate) async fn run(self) {
        let stop = self.handler.stop.clone();
        let limits = self.handler.limits.clone();
        let acceptor = TlsAcceptor::from(self.tls);
        let connections = Arc::new(Semaphore::new(limits.connections));
        let graceful = GracefulShutdown::new();
        loop {
            let permit = tokio::select! {
                () = stop.cancelled() => break,
                permit = connections.clone().acquire_owned() => permit,
            };
            let Ok(permit) = permit else { break };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.socket.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let handler = self.handler.clone();
            let acceptor = acceptor.clone();
            let watcher = graceful.watcher();
            tokio::spawn(async move {
                let _permit = permit;
                handler.metrics.connections.fetch_add(1, Ordering::Relaxed);
                connection(stream, acceptor, handler.clone(), watcher).await;
                handler.metrics.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
        drop(self.socket);
        if tokio::time::timeout(limits.shutdown, graceful.shutdown()).await.is_err() {
            tracing::info!("some connections were cut off");
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    handler: Arc<Handler>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let limits = handler.limits.clone();
    // Watch events are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(limits.handshake, acceptor.accept(stream));
    let stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let peer: Option<Arc<User>> = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(<[_]>::first)
        .and_then(|certificate| Authenticator::certificate(certificate))
        .map(Arc::new);
    let service = service_fn(move |request| {
        let (handler, peer) = (handler.clone(), peer.clone());
        async move { handler.handle(peer.as_ref(), request).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.handshake)
        .max_buf_size(limits.headers as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.headers)
        .keep_alive_interval(limits.ping)
        .keep_alive_timeout(limits.ping);
    let served = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}
