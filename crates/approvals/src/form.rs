//! stub
use switchboard_wire::Raw;
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub path: String,
    pub message: String,
}
pub struct Form;
impl Form {
    pub fn read(_: &Raw) -> Self {
        Self
    }
    pub fn is_url(&self) -> bool {
        false
    }
    pub fn check(&self, content: Option<&Raw>) -> Result<Raw, Vec<Problem>> {
        Ok(content.cloned().unwrap_or_else(Raw::empty_object))
    }
}
