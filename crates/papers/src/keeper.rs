//! The place where results of simulations and loaded drives are saved.

use std::io::{Read, Write};

use serde_json::Value;

use crate::failure::Failure;

/// Saves the results of simulations, and loaded drives. Methods are called from several threads.
pub trait Keeper: Sync {
    /// Receives the names and settings of all simulations, before the first one begins.
    ///
    /// # Errors
    /// Returns the reason, as text, if the simulations must not begin, because saved results would
    /// be lost.
    fn expect(&self, asked: &[(&str, &Value)]) -> Result<(), String>;
    /// Returns the saved result of `name`, if there is one with the same `settings`.
    fn load(&self, name: &str, settings: &Value) -> Option<String>;
    /// Saves the result of `name`, which is JSON.
    fn save(&self, name: &str, settings: &Value, result: &str);
    /// The saved result of `name` could be parsed, and is reused.
    fn taken(&self, name: &str);
    /// Returns the number of reused results that another build of the program saved.
    fn taken_of_others(&self) -> usize;
    /// Returns the loaded drive that this build of the program saved with these `settings`.
    fn drive(&self, name: &str, settings: &Value) -> Option<Box<dyn Read>>;
    /// Saves a loaded drive as a whole, or not at all. `write` writes the drive. Saving is
    /// optional, so a failure is no error.
    fn keep_drive(
        &self,
        name: &str,
        settings: &Value,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), Failure>,
    );
    /// A saved drive cannot be used, for the reason `why`.
    fn drive_is_useless(&self, name: &str, why: &str);
}
