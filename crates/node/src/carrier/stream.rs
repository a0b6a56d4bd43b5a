//! One connection over a stream of bytes that TLS protects: both directions and its end, in [records](super::record).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustls::{AlertDescription, ClientConfig, CommonState, Error as TlsError};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex, split},
    sync::{Semaphore, mpsc, watch},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, TlsStream, server};

use super::{
    ANSWER_LIMIT, CLOSE_GRACE, CarrierError, HeaderCheck, IDLE_TIMEOUT, KEEP_ALIVE, PeerKey, Result, WINDOW,
    link::{Closing, Connection, Incoming, Link, Outgoing, Pending, ReadError, hears, shorten},
    listener::Guest,
    pinned::{self, Pinned, UNUSED_NAME},
    record::{self, Record},
};

/// Pieces of a frame that wait to be written. The window limits what is under way; this limits how much of it is copied ahead.
const QUEUE: usize = 4;

const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How an end shows that it is there, and how soon one that does not is gone.
#[derive(Clone, Copy)]
pub(super) struct Signs {
    /// A sign of life follows so much silence.
    every: Duration,
    /// A peer of which nothing came for so long is gone.
    within: Duration,
}

impl Signs {
    /// Of a network.
    pub(super) const OF_LIFE: Signs = Signs { every: KEEP_ALIVE, within: IDLE_TIMEOUT };
    /// None, where somebody carries letters who may take his time: for longer than a run lasts.
    pub(super) const NONE: Signs = Signs { every: TEN_YEARS, within: TEN_YEARS };
}

/// This end closed it.
fn here() -> ReadError {
    ReadError::Over(CarrierError::closed("this end closed it"))
}

/// The other end is gone without a word.
fn let_go() -> ReadError {
    ReadError::LetGo(CarrierError::closed("the other end dropped it without a word"))
}

/// What TLS said. `unheard`: we dialled and have nothing from the server yet.
fn failed(error: &TlsError, unheard: bool) -> CarrierError {
    match error {
        TlsError::AlertReceived(AlertDescription::NoApplicationProtocol) | TlsError::NoApplicationProtocol => {
            CarrierError::OtherProtocol
        }
        TlsError::AlertReceived(_) if unheard => CarrierError::NotAccepted,
        other => CarrierError::Handshake(shorten(&other.to_string())),
    }
}

/// The key that the other end has proven to hold.
pub(super) fn identity(tls: &CommonState) -> Option<PeerKey> {
    pinned::peer_key(tls.peer_certificates()?.first()?).ok()
}

/// A dialler's link over `bytes`, with these settings of TLS, to the peer with this key. `over` is what it travels on, for people; the last
/// two are what is said where the other end holds another key, and where it lets go before a word.
pub(super) async fn dial<S>(
    bytes: S,
    (tls, verifier): (ClientConfig, Arc<Pinned>),
    (peer, check): (PeerKey, HeaderCheck),
    (over, signs): (&'static str, Signs),
    (wrong, cut): (CarrierError, &str),
) -> Result<Link>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let name = ServerName::try_from(UNUSED_NAME).map_err(CarrierError::setup)?;
    let stream = match TlsConnector::from(Arc::new(tls)).connect(name, bytes).await {
        Ok(stream) if identity(stream.get_ref().1) == Some(peer) => stream,
        Err(error) if !verifier.saw_wrong_key() => {
            let said = tls_error(&error).map(|error| failed(error, true));
            return Err(said.unwrap_or_else(|| CarrierError::closed(cut)));
        }
        // The verifier has refused another key; were it not so, this is no link to use.
        Ok(_) | Err(_) => return Err(wrong),
    };
    let (way, out, into) = begin(TlsStream::from(stream), Some(over), signs);
    Ok(Link::new(way, peer, (Box::new(out), Box::new(into)), check))
}

/// A peer that dialled, after its handshake.
pub(super) fn guest<S>(stream: server::TlsStream<S>, peer: PeerKey, signs: Signs) -> Guest
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (connection, out, mut into) = begin(TlsStream::from(stream), None, signs);
    let opening = async move {
        into.piece().await?;
        Some((Box::new(out) as Box<dyn Outgoing>, Box::new(into) as Box<dyn Incoming>))
    };
    Guest { peer, connection, opening: Box::pin(opening) }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

/// What both halves, all handles and the task of a connection share.
struct Shared {
    ended: watch::Sender<Option<ReadError>>,
    /// For a connection that we dialled, how.
    dialled: Option<&'static str>,
    /// Records of the peer: until there is one, a dialler's alert means "not accepted".
    heard: AtomicU64,
    /// Bytes that we may send.
    credit: Semaphore,
    /// Bytes that the peer may send.
    owed: AtomicI64,
    /// Whether the peer has said that no more bytes follow.
    finished: AtomicBool,
    /// Whether the peer has acknowledged our end.
    end_seen: watch::Sender<bool>,
}

impl Shared {
    /// The first reason counts.
    fn end(&self, why: ReadError) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(why);
                self.credit.close();
            }
            first
        });
    }

    async fn over(&self) -> ReadError {
        let ended = self.ended.subscribe().wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        ended.unwrap_or_else(let_go)
    }
}

/// What the writing half of the task is told beside data.
enum Order {
    Write(Vec<u8>),
    /// The last record of all.
    Close(Vec<u8>),
}

/// A connection, as long as somebody holds it.
struct Way {
    shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
    /// Ends with the connection's task.
    task: watch::Receiver<()>,
}

impl Drop for Way {
    fn drop(&mut self) {
        // Also where the peer reads nothing and the writing half waits for it: it has a moment left.
        self.shared.end(here());
    }
}

impl Connection for Way {
    fn close(&self, why: Closing, reason: &str) {
        close(&self.shared, &self.orders, why, reason);
    }

    fn closed(&self) -> Pending<'_, CarrierError> {
        Box::pin(async { self.shared.over().await.into() })
    }

    fn settled(&self) -> Pending<'_, ()> {
        Box::pin(async {
            let mut task = self.task.clone();
            // The task ends by itself soon after; a listener's links are not waited for, as others go on.
            if self.shared.dialled.is_some() {
                let _ = timeout(CLOSE_GRACE, async { while task.changed().await.is_ok() {} }).await;
            }
        })
    }

    /// A process that ends tells its peer, or its system does. Of one whose machine or network is gone nothing tells, but it gives
    /// no more signs of life.
    fn answers(&self) -> Pending<'_, bool> {
        let heard = || self.shared.heard.load(Ordering::Acquire);
        Box::pin(hears(heard, KEEP_ALIVE + ANSWER_LIMIT, self.shared.over()))
    }

    fn over(&self) -> &'static str {
        self.shared.dialled.unwrap_or("TCP")
    }
}

fn close(shared: &Shared, orders: &mpsc::UnboundedSender<Order>, why: Closing, reason: &str) {
    // The order stands before the end is known, so that the writing half finds it.
    let _ = orders.send(Order::Close(record::close(why, reason)));
    shared.end(here());
}

/// Both directions of a fresh connection, and the task that moves its bytes.
fn begin<S>(stream: S, dialled: Option<&'static str>, signs: Signs) -> (Arc<Way>, Out, In)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let shared = Arc::new(Shared {
        ended: watch::Sender::new(None),
        dialled,
        heard: AtomicU64::new(0),
        credit: Semaphore::new(WINDOW as usize),
        owed: AtomicI64::new(WINDOW.into()),
        finished: AtomicBool::new(false),
        end_seen: watch::Sender::new(false),
    });
    let (orders, ordered) = mpsc::unbounded_channel();
    let (pieces, queue) = mpsc::channel(QUEUE);
    // No more than the window, however small its pieces were.
    let (inbox, bytes) = duplex(WINDOW as usize);
    let (running, task) = watch::channel(());
    let (from, to) = split(stream);
    let (its, weak) = (shared.clone(), orders.downgrade());
    tokio::spawn(async move {
        let _running = running;
        let reading = reading(from, its.clone(), inbox, weak, signs);
        let writing = writing(to, its.clone(), queue, ordered, signs);
        // Once it is over, what is still on its way has a moment.
        let late = async {
            its.over().await;
            sleep(CLOSE_GRACE).await;
        };
        tokio::select! {
            _ = async { tokio::join!(reading, writing) } => {}
            () = late => {}
        }
        its.end(let_go());
    });
    let way = Arc::new(Way { shared, orders, task });
    let out = Out { way: way.clone(), pieces: Some(pieces) };
    let into = In { way: way.clone(), bytes: BufReader::new(bytes), eaten: 0 };
    (way, out, into)
}

/// Takes records until the connection is over, and then what comes of it until the peer has shut it too.
async fn reading(
    mut from: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    mut inbox: DuplexStream,
    orders: mpsc::WeakUnboundedSender<Order>,
    signs: Signs,
) {
    let order = |order| orders.upgrade().map(|orders| orders.send(order));
    let broken = |reason: &str| {
        if let Some(orders) = orders.upgrade() {
            close(&shared, &orders, Closing::BadFrame, reason);
        }
    };
    loop {
        let record = match timeout(signs.within, record::read(&mut from)).await {
            Ok(Ok(Ok(record))) => record,
            Ok(Ok(Err(fault))) => return broken(fault),
            Ok(Err(error)) => {
                let unheard = shared.dialled.is_some() && shared.heard.load(Ordering::Acquire) == 0;
                let said = tls_error(&error).map(|error| ReadError::Over(failed(error, unheard)));
                return shared.end(said.unwrap_or_else(let_go));
            }
            Err(_) => {
                let what = "nothing was heard from the other end any more";
                return shared.end(ReadError::Over(CarrierError::TimedOut(what)));
            }
        };
        shared.heard.fetch_add(1, Ordering::AcqRel);
        match record {
            Record::Data(bytes) => {
                let length = bytes.len() as i64;
                if shared.owed.fetch_sub(length, Ordering::AcqRel) < length {
                    return broken("more was sent than there was leave for");
                }
                if shared.finished.load(Ordering::Acquire) {
                    return broken("bytes came after the end");
                }
                // There is room for all that the peer has leave to send. Where nobody reads any more they are lost.
                let _ = inbox.write_all(&bytes).await;
            }
            Record::Alive => {}
            Record::Window(more) => {
                let room = (WINDOW as usize).saturating_sub(shared.credit.available_permits());
                if more as usize > room {
                    return broken("more leave was given than was used up");
                }
                shared.credit.add_permits(more as usize);
            }
            Record::End => {
                if shared.finished.swap(true, Ordering::AcqRel) {
                    return broken("an end came after the end");
                }
                let _ = inbox.shutdown().await;
                order(Order::Write(record::bytes(record::END_SEEN, &[])));
            }
            Record::EndSeen => {
                shared.end_seen.send_replace(true);
            }
            Record::Close(reason) => {
                let said = format!("the other end says: {}", shorten(&reason));
                return shared.end(ReadError::Over(CarrierError::closed(&said)));
            }
        }
    }
}

/// Writes what it is given until the connection is over. An error shows at the half that reads.
async fn writing(
    mut to: impl AsyncWrite + Unpin,
    shared: Arc<Shared>,
    mut pieces: mpsc::Receiver<Vec<u8>>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    signs: Signs,
) {
    let mut ended = shared.ended.subscribe();
    let mut more = true;
    loop {
        let bytes = tokio::select! {
            biased;
            Some(order) = orders.recv() => match order {
                Order::Write(bytes) => bytes,
                Order::Close(bytes) => {
                    let _ = to.write_all(&bytes).await;
                    break;
                }
            },
            () = async { drop(ended.wait_for(Option::is_some).await) } => {
                // Where nobody holds the connection any more, what they wrote still leaves.
                while let Ok(piece) = pieces.try_recv() {
                    if to.write_all(&piece).await.is_err() {
                        return;
                    }
                }
                break;
            },
            piece = pieces.recv(), if more => {
                more = piece.is_some();
                piece.unwrap_or_else(|| record::bytes(record::END, &[]))
            }
            () = sleep(signs.every) => record::bytes(record::ALIVE, &[]),
        };
        if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

struct Out {
    way: Arc<Way>,
    /// Gone once this direction has ended.
    pieces: Option<mpsc::Sender<Vec<u8>>>,
}

impl Outgoing for Out {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, Result<()>> {
        Box::pin(async {
            let Some(pieces) = &self.pieces else { return Err(CarrierError::closed("this end has finished sending")) };
            for piece in bytes.chunks(record::MOST) {
                match self.way.shared.credit.acquire_many(piece.len() as u32).await {
                    Ok(used) => used.forget(),
                    Err(_) => return Err(self.way.shared.over().await.into()),
                }
                if pieces.send(record::bytes(record::DATA, piece)).await.is_err() {
                    return Err(self.way.shared.over().await.into());
                }
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Pending<'_, Result<()>> {
        self.pieces = None;
        Box::pin(async {
            let mut seen = self.way.shared.end_seen.subscribe();
            tokio::select! {
                biased;
                _ = seen.wait_for(|seen| *seen) => Ok(()),
                over = self.way.shared.over() => Err(over.into()),
            }
        })
    }
}

struct In {
    way: Arc<Way>,
    bytes: BufReader<DuplexStream>,
    /// Bytes that were read and the peer has no new leave for.
    eaten: u32,
}

impl In {
    /// Waits until there is something to read, or nothing follows; nothing where the connection ends before.
    async fn piece(&mut self) -> Option<()> {
        let come = self.bytes.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty());
        (come || self.way.shared.finished.load(Ordering::Acquire)).then_some(())
    }
}

impl Incoming for In {
    fn read<'a>(&'a mut self, into: &'a mut [u8]) -> Pending<'a, Result<Option<usize>, ReadError>> {
        Box::pin(async {
            if self.piece().await.is_none() {
                return Err(self.way.shared.over().await);
            }
            let got = self.bytes.read(into).await.unwrap_or_default();
            if got == 0 {
                return Ok(None);
            }
            self.eaten += got as u32;
            if self.eaten >= WINDOW / 4 {
                self.way.shared.owed.fetch_add(self.eaten.into(), Ordering::AcqRel);
                let more = record::bytes(record::WINDOW, &self.eaten.to_le_bytes());
                let _ = self.way.orders.send(Order::Write(more));
                self.eaten = 0;
            }
            Ok(Some(got))
        })
    }
}
