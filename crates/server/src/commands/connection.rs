//! Commands on the own connection.

use super::command::Call;
use super::help::other_part;
use super::parse::{self, is};
use crate::fault::{Fault, Outcome};
use crate::resp::Protocol;

pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    match call.arguments {
        [_] => call.reply.simple("PONG"),
        [_, message] => call.reply.bulk(message),
        _ => return Err(Fault::error("wrong number of arguments for 'ping' command")),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call<'_>) -> Outcome {
    call.reply.bulk(call.argument(1));
    Ok(())
}

pub(super) fn quit(call: &mut Call<'_>) -> Outcome {
    call.session.is_over = true;
    call.ok()
}

pub(super) fn reset(call: &mut Call<'_>) -> Outcome {
    call.session.is_authenticated = call.state.options.password.is_none();
    call.session.is_astray = false;
    call.session.client.set_name("");
    call.session.transaction = None;
    call.session.watched.clear();
    call.reply.protocol = Protocol::Resp2;
    call.reply.simple("RESET");
    Ok(())
}

pub(super) fn select(call: &mut Call<'_>) -> Outcome {
    // An argument that is not a number changes nothing, as in Redis.
    call.session.is_astray = parse::integer(call.argument(1))? != 0;
    if call.session.is_astray {
        return Err(Fault::error("DB index is out of range"));
    }
    call.ok()
}

pub(super) fn auth(call: &mut Call<'_>) -> Outcome {
    let (user, password) = match call.arguments {
        [_, password] => (None, password),
        [_, user, password] => (Some(*user), password),
        _ => return Err(Fault::syntax()),
    };
    if user.is_none() && call.state.options.password.is_none() {
        let message = "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
        return Err(Fault::error(message));
    }
    authenticate(call, user, password)?;
    call.ok()
}

fn authenticate(call: &mut Call<'_>, user: Option<&[u8]>, password: &[u8]) -> Outcome {
    let is_known = user.is_none_or(|user| user == b"default");
    let is_right = match &call.state.options.password {
        Some(wanted) => is_same(wanted.as_bytes(), password),
        None => true,
    };
    if is_known && is_right {
        call.session.is_authenticated = true;
        return Ok(());
    }
    Err(Fault::of_kind("WRONGPASS invalid username-password pair or user is disabled."))
}

/// Compares in a time that depends only on the length of the given password.
fn is_same(wanted: &[u8], given: &[u8]) -> bool {
    let mut difference = u8::from(wanted.len() != given.len());
    for (place, byte) in given.iter().enumerate() {
        difference |= byte ^ wanted.get(place % wanted.len().max(1)).unwrap_or(&0);
    }
    difference == 0
}

pub(super) fn hello(call: &mut Call<'_>) -> Outcome {
    let mut protocol = call.reply.protocol;
    let mut rest = &call.arguments[1..];
    if let [version, behind @ ..] = rest {
        protocol = match parse::integer(version) {
            Ok(2) => Protocol::Resp2,
            Ok(3) => Protocol::Resp3,
            Ok(_) => return Err(Fault::of_kind("NOPROTO unsupported protocol version")),
            Err(_) => {
                return Err(Fault::error("Protocol version is not an integer or out of range"));
            }
        };
        rest = behind;
    }
    let (mut credentials, mut name) = (None, None);
    while let [word, behind @ ..] = rest {
        match behind {
            [user, password, behind @ ..] if is(word, "AUTH") => {
                credentials = Some((user, password));
                rest = behind;
            }
            [given, behind @ ..] if is(word, "SETNAME") => {
                name = Some(check_name(given)?);
                rest = behind;
            }
            _ => {
                let word = word.escape_ascii();
                return Err(Fault::error(format!("Syntax error in HELLO option '{word}'")));
            }
        }
    }
    // Only once all options are known to be right: an error leaves the connection as it was.
    if let Some((user, password)) = credentials {
        authenticate(call, Some(user), password)?;
    }
    if !call.session.is_authenticated {
        let message = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
        return Err(Fault::of_kind(message));
    }
    if let Some(name) = name {
        call.session.client.set_name(name);
    }
    call.reply.protocol = protocol;
    say_hello(call);
    Ok(())
}

fn say_hello(call: &mut Call<'_>) {
    let mode = if call.state.cluster.is_some() { "cluster" } else { "standalone" };
    let reply = &mut *call.reply;
    reply.map(7);
    let mut pair = |key: &str, value: &str| {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    };
    pair("server", "redis");
    pair("version", crate::REDIS_VERSION);
    pair("mode", mode);
    pair("role", "master");
    reply.bulk(b"proto");
    reply.integer(if reply.protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(call.session.client.id as i64);
    reply.bulk(b"modules");
    reply.array(0);
}

fn check_name(name: &[u8]) -> Result<&str, Fault> {
    let is_plain = name.len() <= 256 && name.iter().all(u8::is_ascii_graphic);
    let text = std::str::from_utf8(name).ok().filter(|_| is_plain);
    let message = "Client names cannot contain spaces, newlines or special characters.";
    text.ok_or_else(|| Fault::error(message))
}

pub(super) fn client(call: &mut Call<'_>) -> Outcome {
    let own = call.session.client.clone();
    match (call.argument(1), &call.arguments[2..]) {
        (word, []) if is(word, "ID") => call.reply.integer(own.id as i64),
        (word, []) if is(word, "GETNAME") => match own.name().as_str() {
            "" => call.reply.null(),
            name => call.reply.bulk(name.as_bytes()),
        },
        (word, [name]) if is(word, "SETNAME") => {
            own.set_name(check_name(name)?);
            return call.ok();
        }
        (word, [attribute, value]) if is(word, "SETINFO") => {
            let value = check_name(value)?;
            match attribute {
                name if is(name, "LIB-NAME") => own.set_library(Some(value), None),
                name if is(name, "LIB-VER") => own.set_library(None, Some(value)),
                _ => return Err(Fault::error("Unrecognized option")),
            }
            return call.ok();
        }
        (word, []) if is(word, "INFO") => {
            let line = own.line(call.access.now);
            call.reply.text(&line);
        }
        (word, which) if is(word, "LIST") => {
            let which = listed(which)?;
            let lines = call.state.clients.lines(call.access.now, |id| which.has(id));
            call.reply.text(&lines);
        }
        (word, [filter, id]) if is(word, "KILL") && is(filter, "ID") => {
            let killed = call.state.clients.kill(parse::integer(id)? as u64);
            call.reply.integer(killed.into());
        }
        (word, [flag]) if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => {
            if !is(flag, "ON") && !is(flag, "OFF") {
                return Err(Fault::syntax());
            }
            return call.ok();
        }
        (word, _) => return other_part(call.reply, word, "CLIENT"),
    }
    Ok(())
}

/// The connections that CLIENT LIST returns.
enum Listed {
    All,
    None,
    Of(Vec<u64>),
}

impl Listed {
    fn has(&self, id: u64) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Of(ids) => ids.contains(&id),
        }
    }
}

/// All connections are `normal`: there are no replicas and no subscribers.
fn listed(which: &[&[u8]]) -> Result<Listed, Fault> {
    match which {
        [] => Ok(Listed::All),
        [word, ids @ ..] if is(word, "ID") && !ids.is_empty() => {
            let id = |text: &&[u8]| {
                let id = parse::integer(text).ok().and_then(|id| u64::try_from(id).ok());
                id.filter(|id| *id > 0).ok_or_else(|| Fault::error("Invalid client ID"))
            };
            Ok(Listed::Of(ids.iter().map(id).collect::<Result<_, _>>()?))
        }
        [word, kind] if is(word, "TYPE") => match kind {
            kind if is(kind, "NORMAL") => Ok(Listed::All),
            kind if ["MASTER", "REPLICA", "SLAVE", "PUBSUB"].iter().any(|name| is(kind, name)) => {
                Ok(Listed::None)
            }
            other => {
                let other = other.escape_ascii();
                Err(Fault::error(format!("Unknown client type '{other}'")))
            }
        },
        _ => Err(Fault::syntax()),
    }
}

/// No effect: it would allow reads on a replica, and there are no replicas.
pub(super) fn readonly(call: &mut Call<'_>) -> Outcome {
    match call.state.cluster {
        Some(_) => call.ok(),
        None => Err(Fault::error("This instance has cluster support disabled")),
    }
}
