//! Connections to the server over the page's port, for programs that nothing else reaches it from.
//!
//! A WebSocket at [`PATH`] is joined to a new connection to the server's own address: its binary
//! messages are the bytes of that connection, in both directions. What they mean, and who may do
//! what, is between the program and the server, whose keys and encryption are inside. The address is
//! fixed: nothing else is reached through a page.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::BytesMut;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use gt::net::address::Address;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Where programs connect.
pub const PATH: &str = "/connect";
/// The WebSocket protocol that they name.
const PROTOCOL: &str = "gt";
/// The number of tunnels; further ones are refused.
pub const TUNNELS: usize = 128;
/// How long the server may take to accept a connection.
const ACCEPT: Duration = Duration::from_secs(5);
/// How long one side may send nothing, or not take what is sent: both send heartbeats each second or
/// two, and end connections without them earlier than this.
const SILENCE: Duration = Duration::from_secs(30);
/// The bytes of one message to a program, which also bound what is stored for one that is slow.
const CHUNK: usize = 64 << 10;
/// The longest message of a program.
const LONGEST: usize = 512 << 10;

/// The server that tunnels lead to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelTarget {
    /// Where this machine reaches it.
    pub address: Address,
    /// Whether peers prove who they are by keys. Without keys, a tunnel takes the page's token.
    pub has_keys: bool,
}

/// The tunnels of a page.
#[derive(Debug)]
pub struct Tunnels {
    target: TunnelTarget,
    places: Arc<Semaphore>,
}

impl Tunnels {
    /// Tunnels to a server.
    pub fn new(target: TunnelTarget) -> Tunnels {
        Tunnels { target, places: Arc::new(Semaphore::new(TUNNELS)) }
    }

    /// Returns whether the server's keys alone protect it, so that the page's token does not.
    pub fn has_keys(&self) -> bool {
        self.target.has_keys
    }

    /// Connects to the server.
    async fn reach(&self) -> std::io::Result<Box<dyn ByteStream>> {
        Ok(match &self.target.address {
            Address::Tcp { host, port } => {
                let host = if host == "localhost" { "127.0.0.1" } else { host };
                let stream = TcpStream::connect((host, *port)).await?;
                // What is small, as a question, is to arrive at once.
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Ipc { path } => Box::new(UnixStream::connect(path).await?),
        })
    }
}

/// A connection to the server.
trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// What is served at [`PATH`].
pub fn route<S: Clone + Send + Sync + 'static>(tunnels: Arc<Tunnels>) -> MethodRouter<S> {
    get(open).with_state(tunnels)
}

/// Opens a tunnel. The answers of a page that opens none say why, for the program's message.
async fn open(
    State(tunnels): State<Arc<Tunnels>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        // Also if a proxy between has removed what asks for it.
        return (StatusCode::UPGRADE_REQUIRED, [(header::UPGRADE, "websocket")]).into_response();
    };
    let Ok(place) = tunnels.places.clone().try_acquire_owned() else {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    };
    let Ok(Ok(server)) = timeout(ACCEPT, tunnels.reach()).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(CHUNK)
        .write_buffer_size(CHUNK)
        .max_write_buffer_size(4 * CHUNK)
        .max_frame_size(LONGEST)
        .max_message_size(LONGEST);
    upgrade.on_upgrade(|program| async move {
        carry(program, server).await;
        drop(place);
    })
}

/// Carries bytes until one side ends, fails or is silent; then both are closed.
async fn carry(program: WebSocket, server: Box<dyn ByteStream>) {
    let (to_program, from_program) = program.split();
    let (from_server, to_server) = tokio::io::split(server);
    let up = to_the_server(from_program, to_server);
    let down = to_the_program(from_server, to_program);
    // Each waits for its own reader only, and reads nothing further while it does.
    futures_util::future::select(std::pin::pin!(up), std::pin::pin!(down)).await;
}

async fn to_the_server(mut from: SplitStream<WebSocket>, mut to: WriteHalf<Box<dyn ByteStream>>) {
    while let Ok(Some(Ok(message))) = timeout(SILENCE, from.next()).await {
        match message {
            Message::Binary(bytes) => {
                if !matches!(timeout(SILENCE, to.write_all(&bytes)).await, Ok(Ok(()))) {
                    return;
                }
            }
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Text(_) | Message::Close(_) => return,
        }
    }
}

async fn to_the_program(
    mut from: ReadHalf<Box<dyn ByteStream>>,
    mut to: SplitSink<WebSocket, Message>,
) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        let read = timeout(SILENCE, from.read_buf(&mut buffer)).await;
        if !matches!(read, Ok(Ok(count)) if count > 0) {
            // The program then knows that the server has ended it, not the network.
            let _ = timeout(ACCEPT, to.send(Message::Close(None))).await;
            return;
        }
        let message = Message::Binary(buffer.split().freeze());
        if !matches!(timeout(SILENCE, to.send(message)).await, Ok(Ok(()))) {
            return;
        }
    }
}
