//! Starting, containing and stopping process trees and containers.
