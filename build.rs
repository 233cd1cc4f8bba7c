//! Tells the linker what a Node.js addon needs. Does nothing for the plain Rust library.

fn main() {
    #[cfg(feature = "node")]
    napi_build::setup();
}
