//! The runtime as its users see it: order, time, tasks that end or hang, and what tasks wait for.

mod order;
mod queues;
mod randomness;
mod resources;
mod semaphores;
mod tasks;
mod time;
