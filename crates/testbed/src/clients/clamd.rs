//! clamd, the scanner of ClamAV, with signatures of a test's own: nothing is fetched.

use super::serves;
use crate::{Error, Namespace, Process, folder};
use std::path::PathBuf;
use std::{fs::Permissions, net::SocketAddr, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

/// The test file of EICAR (eicar.org): 68 bytes that every scanner calls a virus. In two halves, so that no scanner finds it in
/// a program that was built from this file.
pub fn eicar() -> Vec<u8> {
    [r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR", "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"]
        .concat()
        .into_bytes()
}

/// A running clamd; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Clamd {
    process: Process,
    folder: TempDir,
}

impl Clamd {
    /// Starts it with one signature, EICAR's anywhere in a file, at a socket in the file system ([`Self::socket`])
    /// and, if there is an address, over TCP, and waits until it serves.
    ///
    /// # Errors
    ///
    /// When it is not installed or ends; with what it wrote.
    pub fn start(namespace: &Namespace, tcp: Option<SocketAddr>) -> Result<Self, Error> {
        Self::with(namespace, tcp, "AlertExceedsMax yes\n")
    }

    /// The same with more lines of clamd.conf; [`Self::start`] has it tell that limits are exceeded.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub fn with(namespace: &Namespace, tcp: Option<SocketAddr>, more: &str) -> Result<Self, Error> {
        let folder = folder::new()?;
        let open = std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755));
        open.map_err(|error| Error::new("opening a folder", error))?;
        let at = folder.path().to_string_lossy().into_owned();
        let hex: String = eicar()[..60].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut settings = format!(
            "Foreground yes\nDatabaseDirectory {at}\nLocalSocket {at}/clamd\nLogTime no\n\
             LogSyslog no\nStreamMaxLength 100M\nMaxThreads 4\n{more}"
        );
        if let Some(tcp) = tcp {
            settings += &format!("TCPAddr {}\nTCPSocket {}\n", tcp.ip(), tcp.port());
        }
        for (name, text) in
            [("eicar.ndb", format!("Nigh.Test.EICAR:0:*:{hex}\n")), ("clamd.conf", settings)]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, text)
                .map_err(|error| Error::new(path.to_string_lossy(), error))?;
        }
        let mut process = namespace.spawn(&["clamd", "-c", &format!("{at}/clamd.conf")])?;
        let socket = folder.path().join("clamd");
        serves("clamd", &mut process, |_| {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        })?;
        Ok(Self { process, folder })
    }

    /// Its socket in the file system.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("clamd")
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

#[cfg(test)]
mod tests {
    mod root {
        use crate::clients::clamd::*;
        use std::{
            io::{Read, Write},
            os::unix::net::UnixStream,
        };

        #[test]
        fn the_scanner_knows_eicar_and_nothing_else() {
            let namespace = Namespace::new("clamd").unwrap();
            let clamd = Clamd::start(&namespace, None).unwrap();
            let scan = |bytes: &[u8]| {
                let mut stream = UnixStream::connect(clamd.socket()).unwrap();
                let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
                stream.write_all(&[b"zINSTREAM\0", &length[..], bytes, &[0; 4]].concat()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                answer
            };
            assert_eq!(eicar().len(), 68);
            assert!(scan(&eicar()).contains("FOUND"));
            assert!(scan(&[b'x'; 68]).contains("OK"));
        }
    }
}
