//! Bodies of requests and answers, as far as there is memory for them.

use super::dispatch::{Peer, Site, full};
use crate::alto::{counters::Refusal, error::Problem, reply};
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Response, header},
};
use futures_util::StreamExt;
use hyper::body::{Body as _, Incoming};
use permits::Full;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a request waits for memory that others have to free.
const MEMORY: Duration = Duration::from_secs(1);

impl Site {
    /// The response, if it is whole, as part of the account of memory until it is sent.
    pub(super) async fn accounted(
        &self,
        mut response: Response<Body>,
        peer: Peer,
    ) -> Response<Body> {
        let length = response.body().size_hint().exact().unwrap_or(0);
        // A refusal is short and always sent.
        if length == 0 || response.status().is_server_error() {
            return response;
        }
        if !self.room(peer).await {
            return full();
        }
        let mut body = std::mem::take(response.body_mut()).into_data_stream();
        if let Some(Ok(bytes)) = body.next().await {
            *response.body_mut() = self.memory().answer(peer.source, bytes).into();
        }
        response
    }

    /// Whether a client may use more memory. Where there is none, the source that uses the most gives way to those
    /// that use less: that connection of it is ended whose client has not taken its answer for longest.
    pub(super) async fn room(&self, peer: Peer) -> bool {
        let end = Instant::now() + MEMORY;
        loop {
            let freed = self.memory().freed();
            let made = match self.memory().room(peer.source) {
                Ok(()) => return true,
                Err(Full::Source) => false,
                Err(Full::All) => self
                    .memory()
                    .fuller_than(peer.source)
                    .is_some_and(|fullest| self.places().evict_of(fullest)),
            };
            if !made || timeout_at(end, freed).await.is_err() {
                self.counters().refuse(Refusal::Memory);
                return false;
            }
        }
    }

    /// The whole body, if it is not too large and comes in time.
    pub(super) async fn read(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        peer: Peer,
    ) -> Result<Bytes, Box<Response<Body>>> {
        let most = self.limits().body.0 as usize;
        let mut held = self.memory().body(peer.source);
        let too_large = || {
            self.counters().refuse(Refusal::Body);
            let problem = Problem::syntax(format!("the body has more than {most} bytes"));
            Box::new(reply::problem(413, &problem))
        };
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        if length.and_then(|text| text.parse().ok()).is_some_and(|length: usize| length > most) {
            return Err(too_large());
        }
        let mut pieces = Body::new(body).into_data_stream();
        let all = async {
            let mut all = Vec::new();
            while let Some(piece) = pieces.next().await {
                // The connection is gone; this answer is not sent.
                let Ok(piece) = piece else {
                    return Err(Box::new(reply::sentence(400, "The body ended too early.")));
                };
                if all.len() + piece.len() > most {
                    return Err(too_large());
                }
                if !self.room(peer).await {
                    return Err(Box::new(full()));
                }
                held.grow(piece.len());
                all.extend_from_slice(&piece);
            }
            Ok(all)
        };
        match timeout(self.limits().timeout, all).await {
            Ok(all) => Ok(held.keep(all?)),
            Err(_) => {
                self.counters().refuse(Refusal::Slow);
                Err(Box::new(reply::sentence(408, "The body did not arrive in time.")))
            }
        }
    }
}
