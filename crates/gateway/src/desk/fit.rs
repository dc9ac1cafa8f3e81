//! Results that fit: what is too long for an agent is cut, and can be read on.
use super::{Room, menu::Keep};
use crate::failure::Failure;
use switchboard_client::Raw;
impl Room<'_> {
    pub(super) async fn fit(
        &self,
        _server: &str,
        result: Raw,
        _own: Option<usize>,
        _keep: Keep,
    ) -> Raw {
        result
    }
    pub(super) async fn read_result(&self, _params: &Raw) -> Result<Raw, Failure> {
        Err(Failure::invalid_params("none"))
    }
}
