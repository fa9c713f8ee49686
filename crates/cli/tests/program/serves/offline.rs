//! Data that a server wrote, read from a shell after the server has ended.

use server::resp::Value;

use std::net::TcpListener;

use super::process::{Client, Process, Scratch};
use crate::run::levelhead;

#[test]
fn an_address_that_is_taken_leaves_no_store_behind() {
    let scratch = Scratch::new("serves-taken");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has one").to_string();
    let directory = scratch.0.to_str().expect("the path is text");
    let ended = levelhead(&["serve", directory, "--listen", &address]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot listen on"), "{}", ended.stderr);
    assert!(!scratch.0.exists(), "{}", ended.stderr);
}

#[test]
fn commands_on_a_store_that_is_served_say_that_clients_have_other_keys() {
    let scratch = Scratch::new("serves-offline");
    let server = Process::start(&scratch.0, &[]);
    let mut client = Client::connect(server.address);
    assert_eq!(client.ask(&[b"SET", b"apple", b"red"]), Value::Simple("OK".to_owned()));
    server.stop();
    let store = scratch.0.to_str().expect("the path is text");
    for (command, code, so) in [
        (&["get", "--store", store, "apple"][..], 1, "is not found so"),
        (&["put", "--store", store, "apple", "green"], 0, "clients do not see this pair"),
        (&["delete", "--store", store, "apple"], 0, "stays"),
    ] {
        let ended = levelhead(command);
        assert_eq!(ended.code, Some(code), "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("is served to clients of Redis"), "{}", ended.stderr);
        assert!(ended.stderr.contains(so), "{}", ended.stderr);
    }
    let server = Process::start(&scratch.0, &[]);
    let mut client = Client::connect(server.address);
    assert_eq!(client.ask(&[b"GET", b"apple"]), Value::Bulk(b"red".to_vec()));
    server.stop();
}
