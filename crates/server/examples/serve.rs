//! Serves a store, for measurements: `serve DIRECTORY PORT [none|interval|group|each] [WORKERS]`.

use std::error::Error;

use levelhead::{Durability, Store};
use server::{Clock, Options, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let word = |place: usize, otherwise: &str| {
        arguments.get(place).map_or(otherwise.to_owned(), ToOwned::to_owned)
    };
    let durability = match word(3, "group").as_str() {
        "none" => Durability::None,
        "interval" => Durability::Interval,
        "each" => Durability::Each,
        _ => Durability::Group,
    };
    let store =
        Store::open(word(1, "."), &levelhead::Options { durability, ..Default::default() })?;
    let port: u16 = word(2, "6379").parse()?;
    let options = Options {
        listen: Some(([127, 0, 0, 1], port).into()),
        durability,
        workers: word(4, "8").parse()?,
        ..Options::default()
    };
    let server = Server::start(store, options, Clock::system())?;
    server.wait_for_signal(|| println!("serves on {}", server.addresses()))?;
    server.stop()?;
    Ok(())
}
