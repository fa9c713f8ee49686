//! Commands on the server itself.

use super::command::{Call, Spec};
use super::help::other_part;
use super::parse::{self, is};
use crate::cluster::{Cluster, Node, slot_of};
use crate::fault::{Fault, Outcome};
use crate::resp::Reply;
use crate::{glob, info};

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let sections: Vec<String> =
        call.arguments[1..].iter().map(|s| String::from_utf8_lossy(s).to_lowercase()).collect();
    let text = info::text(call.state, call.access.now, &sections);
    call.reply.text(&text);
    Ok(())
}

pub(super) fn time(call: &mut Call<'_>) -> Outcome {
    let now = call.access.now;
    call.reply.array(2);
    call.reply.bulk((now / 1_000).to_string().as_bytes());
    call.reply.bulk((now % 1_000 * 1_000).to_string().as_bytes());
    Ok(())
}

pub(super) fn lastsave(call: &mut Call<'_>) -> Outcome {
    let now = call.access.now / 1_000;
    call.reply.integer(now as i64);
    Ok(())
}

/// A master without replicas.
pub(super) fn role(call: &mut Call<'_>) -> Outcome {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.integer(0);
    call.reply.array(0);
    Ok(())
}

/// Returns 0 at once: there are no replicas, and none can join during the wait.
pub(super) fn wait(call: &mut Call<'_>) -> Outcome {
    parse::integer(call.argument(1))?;
    let timeout = parse::integer(call.argument(2));
    match timeout.map_err(|_| Fault::error("timeout is not an integer or out of range"))? {
        0.. => call.reply.integer(0),
        _ => return Err(Fault::error("timeout is negative")),
    }
    Ok(())
}

pub(super) fn config(call: &mut Call<'_>) -> Outcome {
    match (call.argument(1), &call.arguments[2..]) {
        (word, patterns @ [_, ..]) if is(word, "GET") => {
            let settings = settings(call);
            let is_asked_for = |name: &str| {
                patterns
                    .iter()
                    .any(|pattern| glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes()))
            };
            let found: Vec<_> = settings.iter().filter(|(name, _)| is_asked_for(name)).collect();
            call.reply.map(found.len());
            for (name, value) in found {
                call.reply.bulk(name.as_bytes());
                call.reply.bulk(value.as_bytes());
            }
            Ok(())
        }
        (word, []) if is(word, "RESETSTAT") => call.ok(),
        (word, _) if is(word, "SET") => {
            Err(Fault::error("settings are those that the server was started with"))
        }
        (word, _) => other_part(call.reply, word, "CONFIG"),
    }
}

/// Returns the settings under their names in `redis.conf`.
fn settings(call: &Call<'_>) -> Vec<(&'static str, String)> {
    let options = &call.state.options;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let is_logged = options.durability != levelhead::Durability::None;
    let fsync = match options.durability {
        levelhead::Durability::Each | levelhead::Durability::Group => "always",
        levelhead::Durability::Interval => "everysec",
        levelhead::Durability::None => "no",
    };
    vec![
        ("appendfsync", fsync.to_owned()),
        ("appendonly", yes(is_logged)),
        ("client-query-buffer-limit", options.query_bytes.to_string()),
        ("cluster-enabled", yes(call.state.cluster.is_some())),
        ("databases", "1".to_owned()),
        ("maxclients", options.max_clients.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-clients", options.client_bytes.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("port", call.state.port.to_string()),
        ("proto-max-bulk-len", crate::limits::MAX_ARGUMENT_BYTES.to_string()),
        ("protected-mode", yes(options.protected)),
        ("save", String::new()),
        ("slowlog-log-slower-than", options.slow_us.to_string()),
        ("slowlog-max-len", options.slow_kept.to_string()),
        ("timeout", "0".to_owned()),
    ]
}

pub(super) fn command(call: &mut Call<'_>) -> Outcome {
    let (room, reply, table) = (call.room(), &mut *call.reply, call.table);
    match call.arguments {
        [_] => {
            reply.array(table.all().len());
            for spec in table.all() {
                say_spec(reply, spec);
            }
        }
        [_, word] if is(word, "COUNT") => reply.count(table.all().len()),
        [_, word] if is(word, "LIST") => {
            reply.array(table.all().len());
            for spec in table.all() {
                reply.bulk(spec.name.to_lowercase().as_bytes());
            }
        }
        [_, word, names @ ..] if is(word, "INFO") => {
            reply.array(names.len());
            for name in names {
                match table.find(name) {
                    Some(spec) => say_spec(reply, spec),
                    None => reply.null(),
                }
                room.take(reply.len())?;
            }
        }
        [_, word, names @ ..] if is(word, "DOCS") => {
            let all = || table.all().iter().collect::<Vec<&Spec>>();
            let named = || names.iter().filter_map(|name| table.find(name)).collect();
            let specs: Vec<&Spec> = if names.is_empty() { all() } else { named() };
            reply.map(specs.len());
            for spec in specs {
                say_docs(reply, spec);
                room.take(reply.len())?;
            }
        }
        [_, word, command @ ..] if is(word, "GETKEYS") && !command.is_empty() => {
            let spec =
                table.find(command[0]).ok_or_else(|| Fault::error("Invalid command specified"))?;
            let keys: Vec<&[u8]> = spec.keys(command).collect();
            reply.array(keys.len());
            for key in keys {
                reply.bulk(key);
                room.take(reply.len())?;
            }
        }
        [_, word, ..] => return other_part(reply, word, "COMMAND"),
        [] => unreachable!("a command has a name"),
    }
    Ok(())
}

fn say_spec(reply: &mut Reply, spec: &Spec) {
    let (first, last, step) = spec.key_places();
    reply.array(10);
    reply.bulk(spec.name.to_lowercase().as_bytes());
    reply.integer(spec.arity.into());
    reply.set(1);
    reply.simple(if spec.is_write { "write" } else { "readonly" });
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    // ACL categories, tips, key specifications and subcommands are empty, but clients of Redis 7
    // expect them.
    reply.set(0);
    (0..3).for_each(|_| reply.array(0));
}

fn say_docs(reply: &mut Reply, spec: &Spec) {
    reply.bulk(spec.name.to_lowercase().as_bytes());
    reply.map(2);
    for (key, value) in [("summary", spec.summary), ("group", spec.group.name())] {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

pub(super) fn slowlog(call: &mut Call<'_>) -> Outcome {
    let slowlog = &call.state.slowlog;
    match (call.argument(1), &call.arguments[2..]) {
        (word, []) if is(word, "LEN") => call.reply.count(slowlog.len()),
        (word, []) if is(word, "RESET") => {
            slowlog.clear();
            return call.ok();
        }
        (word, rest) if is(word, "GET") && rest.len() < 2 => {
            let most = rest.first().map_or(Ok(10), |most| parse::integer(most))?;
            let last = slowlog.last(usize::try_from(most).unwrap_or(usize::MAX));
            call.reply.array(last.len());
            for slow in last {
                call.reply.array(6);
                call.reply.integer(slow.id as i64);
                call.reply.integer(slow.at_s as i64);
                call.reply.integer(slow.micros as i64);
                call.reply.array(slow.arguments.len());
                for argument in &slow.arguments {
                    call.reply.bulk(argument);
                }
                call.reply.bulk(slow.client.as_bytes());
                call.reply.bulk(b"");
            }
        }
        (word, _) => return other_part(call.reply, word, "SLOWLOG"),
    }
    Ok(())
}

pub(super) fn cluster(call: &mut Call<'_>) -> Outcome {
    let Some(cluster) = &call.state.cluster else {
        return Err(Fault::error("This instance has cluster support disabled"));
    };
    let reply = &mut *call.reply;
    match (call.arguments[1], &call.arguments[2..]) {
        (word, []) if is(word, "SLOTS") => say_slots(reply, cluster),
        (word, []) if is(word, "SHARDS") => {
            reply.array(cluster.nodes.len());
            for node in &cluster.nodes {
                say_shard(reply, node);
            }
        }
        (word, []) if is(word, "NODES") => reply.text(&cluster.lines()),
        (word, []) if is(word, "INFO") => reply.text(&cluster_info(cluster)),
        (word, []) if is(word, "MYID") => reply.bulk(cluster.nodes[cluster.own].id.as_bytes()),
        (word, [key]) if is(word, "KEYSLOT") => reply.integer(slot_of(key).into()),
        (word, _) => return other_part(reply, word, "CLUSTER"),
    }
    Ok(())
}

fn say_slots(reply: &mut Reply, cluster: &Cluster) {
    reply.array(cluster.nodes.iter().map(|node| node.ranges.len()).sum());
    for node in &cluster.nodes {
        for (first, last) in &node.ranges {
            reply.array(3);
            reply.integer((*first).into());
            reply.integer((*last).into());
            reply.array(4);
            reply.bulk(node.host.as_bytes());
            reply.integer(node.port.into());
            reply.bulk(node.id.as_bytes());
            reply.array(0);
        }
    }
}

fn say_shard(reply: &mut Reply, node: &Node) {
    reply.map(2);
    reply.bulk(b"slots");
    reply.array(2 * node.ranges.len());
    for (first, last) in &node.ranges {
        reply.integer((*first).into());
        reply.integer((*last).into());
    }
    reply.bulk(b"nodes");
    reply.array(1);
    reply.map(7);
    let mut pair = |key: &str, value: &str| {
        reply.bulk(key.as_bytes());
        reply.bulk(value.as_bytes());
    };
    pair("id", &node.id);
    pair("ip", &node.host);
    pair("endpoint", &node.host);
    pair("role", "master");
    pair("health", "online");
    reply.bulk(b"port");
    reply.integer(node.port.into());
    reply.bulk(b"replication-offset");
    reply.integer(0);
}

fn cluster_info(cluster: &Cluster) -> String {
    let slots = crate::cluster::SLOTS;
    let nodes = cluster.nodes.len();
    format!(
        "cluster_state:ok\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:{nodes}\r\n\
         cluster_size:{nodes}\r\ncluster_current_epoch:1\r\ncluster_my_epoch:1\r\n\
         cluster_slots_own:{}\r\n",
        cluster.own_slots()
    )
}
