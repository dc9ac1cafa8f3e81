//! The web page of the gateway: its files, and how they are to be served.
