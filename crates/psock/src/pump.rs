//! Between the application's socket and the core.

use crate::{
    error::{EndReason, SessionError},
    session::{Event, Session},
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    sync::Arc,
};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Blocks read or written with one system call.
const BLOCKS: usize = 16;

/// Gives the application's bytes to the core, until the application ends.
pub(crate) async fn give(session: Arc<Session>, socket: OwnedReadHalf) {
    match try_give(&session, &socket).await {
        Ok(()) => {
            let mut inner = session.lock();
            if !inner.aborted {
                inner.core.finish();
                inner.settle(&session);
            }
        }
        // The application closed its socket and left bytes there that were for it.
        Err(_) => session.send_event(Event::Fail(SessionError::Here(EndReason::Aborted))),
    }
}

async fn try_give(session: &Session, socket: &OwnedReadHalf) -> io::Result<()> {
    let block = session.config.block_bytes;
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    loop {
        let room = {
            let mut inner = session.lock();
            let room = inner.core.send_room();
            inner.wants_room = room == 0;
            room
        };
        if room == 0 {
            session.room.notified().await;
            continue;
        }
        let count = room.div_ceil(block).min(BLOCKS);
        blocks.resize_with(count, || vec![0; block]);
        let mut left = room;
        let mut slices: Vec<IoSliceMut<'_>> = Vec::with_capacity(count);
        for block in &mut blocks {
            let length = block.len().min(left);
            left -= length;
            slices.extend(block.get_mut(..length).map(IoSliceMut::new));
        }
        socket.readable().await?;
        let mut length = match socket.try_read_vectored(&mut slices) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let mut given = Vec::with_capacity(count);
        while length >= block && !blocks.is_empty() {
            given.push(blocks.remove(0));
            length -= block;
        }
        if let Some(rest) = blocks.first().and_then(|block| block.get(..length))
            && !rest.is_empty()
        {
            // No more memory than bytes.
            given.push(rest.to_vec());
        }
        let mut inner = session.lock();
        for bytes in given {
            inner.give(bytes);
        }
        inner.settle(session);
    }
}

/// Gives the application what has come, until the peer's stream ends.
pub(crate) async fn take(session: Arc<Session>, mut socket: OwnedWriteHalf) {
    if try_take(&session, &mut socket).await.is_err() {
        // It no longer reads, but bytes for it have come.
        session.send_event(Event::Fail(SessionError::Here(EndReason::Aborted)));
    }
}

async fn try_take(session: &Session, socket: &mut OwnedWriteHalf) -> io::Result<()> {
    let mut chunks = Vec::with_capacity(BLOCKS);
    loop {
        let ended = {
            let mut inner = session.lock();
            while chunks.len() < BLOCKS
                && let Some(chunk) = inner.core.deliver()
            {
                chunks.push(chunk);
            }
            inner.wants_bytes = chunks.is_empty();
            inner.core.is_taken()
        };
        if chunks.is_empty() {
            if ended {
                // First the status, then the end that the application sees.
                session.status.received();
                let _ = tokio::io::AsyncWriteExt::shutdown(socket).await;
                return Ok(());
            }
            session.arrived.notified().await;
            continue;
        }
        let mut slices: Vec<_> = chunks.iter().map(|chunk| IoSlice::new(chunk.as_ref())).collect();
        let mut left = slices.as_mut_slice();
        while !left.is_empty() {
            socket.writable().await?;
            match socket.try_write_vectored(left) {
                Ok(count) => {
                    IoSlice::advance_slices(&mut left, count);
                    let mut inner = session.lock();
                    inner.delivered(count);
                    inner.settle(session);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        chunks.clear();
    }
}
