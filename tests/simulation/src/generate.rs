//! Generates schedules from seeds. Steps are weighted and grouped into phrases: uniformly random steps would
//! hardly ever get past the handshake.

use switchboard_machine::DownKind;
use switchboard_wire::{Era, Revision};

use crate::{
    random::Random,
    schedule::{Schedule, Setup},
    step::{Garbage, Server, Shape, Step, Stray, Welcome},
};

/// The schedule of a seed.
pub fn schedule(seed: u64) -> Schedule {
    let mut random = Random::new(seed);
    let setup = setup(&mut random);
    // With a server that has no revision in common, there is little else to see.
    let modern = setup.newest == Revision::LATEST || random.percent(10);
    let server = match random.below(10) {
        0..4 if modern => Server::Modern,
        0..7 => Server::Old,
        _ => Server::Older,
    };
    let length = 30 + usize::from(random.below(31));
    let mut author = Author {
        random,
        quick: setup.quick,
        server,
        steps: Vec::with_capacity(length + 12),
    };
    if author.random.percent(92) {
        author.connect();
    }
    while author.steps.len() < length {
        author.phrase();
    }
    Schedule {
        seed,
        setup,
        steps: finish(author.random, author.steps),
    }
}

/// Moves some messages of the server to the streams of requests, and lets some calls accept their log
/// messages.
fn finish(mut random: Random, steps: Vec<Step>) -> Vec<Step> {
    let mut finished = Vec::with_capacity(steps.len() * 2);
    for step in steps {
        if step.is_message() && random.percent(40) {
            finished.push(Step::Via(random.below(160)));
        }
        match step {
            Step::Call(mut shape) => {
                shape.logs = random.percent(50);
                finished.push(Step::Call(shape));
                if random.percent(10) {
                    finished.push(Step::Log);
                }
            }
            other => finished.push(other),
        }
    }
    finished
}

fn setup(random: &mut Random) -> Setup {
    Setup {
        newest: if random.percent(75) {
            Revision::LATEST
        } else {
            random.pick(&Revision::ALL)
        },
        era: random.pick(&[None, None, None, Some(Era::Legacy), Some(Era::Modern)]),
        tight: random.percent(40),
        quick: random.percent(40),
        late_results: random.percent(25),
        settle: random.percent(50),
    }
}

struct Author {
    random: Random,
    quick: bool,
    server: Server,
    steps: Vec<Step>,
}

/// Permanent failures are rare; otherwise every schedule would end with one.
const DOWNS: [DownKind; 7] = [
    DownKind::Closed,
    DownKind::Closed,
    DownKind::Closed,
    DownKind::Unreachable,
    DownKind::Unreachable,
    DownKind::Unreachable,
    DownKind::Permanent,
];

/// The default in most cases; the short ones end within the retry window.
const TIMEOUTS: [u32; 12] = [30_000, 30_000, 30_000, 0, 1, 4, 8, 12, 20, 60, 500, 2_000];

impl Author {
    fn say(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Any number: it is used modulo the number of candidates.
    fn which(&mut self) -> u8 {
        self.random.below(128)
    }

    fn phrase(&mut self) {
        match self.random.below(100) {
            0..21 => self.call(),
            21..41 => self.answer(),
            41..52 => self.time(),
            52..60 => self.talk(),
            60..66 => self.busy(),
            66..70 => self.owner(),
            70..75 => self.leave(),
            75..77 => self.noise(),
            77..81 => self.batch(),
            81..85 => self.stale(),
            85..88 => self.fail(),
            88..92 => self.reconnect(),
            92..94 => self.odd_handshake(),
            94..96 => self.burst(),
            96 => self.say(Step::Restart),
            97 => self.say(Step::Up),
            98 => {
                let count = 1 + self.random.below(3);
                self.say(Step::Shut(count));
            }
            _ => {
                // The state after a stop deserves attention, but not in every schedule.
                if self.random.percent(40) {
                    self.say(Step::Stop);
                }
            }
        }
    }

    fn connect(&mut self) {
        if self.random.percent(12) {
            let busy = 1 + self.random.below(3);
            self.say(Step::Busy(busy));
        }
        if self.random.percent(4) {
            self.talk();
        }
        if !self.steps.is_empty() && self.random.percent(50) {
            self.say(Step::Restart);
        }
        self.say(Step::Up);
        if self.random.percent(3) {
            // The server is slow to answer the probe, and the transport to accept the next frame.
            let busy = self.random.below(5);
            self.say(Step::Busy(busy));
            self.say(Step::Ring);
        }
        for _ in 0..2 + u8::from(self.server == Server::Modern) {
            match self.random.below(20) {
                0 => self.say(Step::Ring),
                1 => self.talk(),
                2 => self.call(),
                3 => self.time(),
                _ => {}
            }
            let server = self.server;
            self.say(Step::Greet(server));
        }
    }

    fn reconnect(&mut self) {
        if self.random.percent(80) {
            let kind = self.random.pick(&DOWNS);
            self.say(Step::Down(kind));
        } else {
            self.say(Step::Oversize);
        }
        for _ in 0..self.random.below(3) {
            match self.random.below(8) {
                0 => self.talk(),
                1 => self.answer(),
                2 => self.leave(),
                3 => self.time(),
                _ => self.call(),
            }
        }
        self.say(Step::Ring);
        if self.random.percent(85) {
            self.connect();
        }
    }

    fn odd_handshake(&mut self) {
        if self.random.percent(70) {
            let kind = self.random.pick(&DOWNS);
            self.say(Step::Down(kind));
            self.say(Step::Restart);
            if self.random.percent(25) {
                self.busy();
            }
            self.say(Step::Up);
        }
        for _ in 0..=self.random.below(3) {
            let late = u8::from(self.random.percent(20));
            let how = self.random.pick(Welcome::ALL);
            match self.random.below(10) {
                0 => self.say(Step::Ring),
                1 => self.fail(),
                2 => self.say(Step::Down(DownKind::Closed)),
                3 => self.say(Step::Up),
                _ => self.say(Step::Welcome(late, how)),
            }
        }
    }

    fn call(&mut self) {
        let random = &mut self.random;
        // If progress extends the deadline, the deadline is one that can be extended.
        let (timeout, extend) = match random.below(20) {
            0 => (random.pick(&[4, 8, 12]), (20, 25)),
            1 => (random.pick(&[12, 20]), (20, 60)),
            2 => (2_000, (2_000, 3_000)),
            _ => (random.pick(&TIMEOUTS), (0, 0)),
        };
        let shape = Shape {
            lane: random.below(3),
            timeout,
            extend,
            notify: extend == (0, 0) && random.percent(15),
            progress: extend != (0, 0) || random.percent(10),
            logs: false,
            fast: random.percent(8),
            array: random.percent(4),
        };
        self.say(Step::Call(shape));
        if extend != (0, 0) && self.random.percent(50) {
            let soon = self.random.pick(&[2, 3, 6, 10]);
            self.say(Step::Wait(soon));
            self.say(Step::Progress(0));
        }
    }

    fn burst(&mut self) {
        for _ in 0..2 + self.random.below(4) {
            self.call();
        }
    }

    fn answer(&mut self) {
        // The latest one most likely still has a waiting caller.
        let which = if self.random.percent(70) {
            self.random.below(3)
        } else {
            self.which()
        };
        let step = match self.random.below(10) {
            0..6 => Step::Answer(which),
            6 | 7 => Step::Error(which),
            8 => Step::Guess(which),
            _ => Step::Again(which),
        };
        self.say(step);
    }

    fn time(&mut self) {
        const SHORT: [u32; 12] = [0, 1, 3, 5, 8, 10, 12, 15, 16, 20, 50, 60];
        const LONG: [u32; 8] = [100, 500, 2_000, 2_001, 10_000, 30_000, 60_000, 76_000];
        let long = !self.quick && self.random.percent(30);
        let ms = if long {
            self.random.pick(&LONG)
        } else {
            self.random.pick(&SHORT)
        };
        let step = match self.random.below(10) {
            0..5 => Step::Wait(ms),
            5..8 => Step::Doze(ms),
            _ => Step::Ring,
        };
        self.say(step);
    }

    fn talk(&mut self) {
        let which = self.random.below(160);
        let step = match self.random.below(10) {
            0 | 1 => Step::Ping(which),
            2 | 3 => Step::Ask(which),
            4 => Step::News,
            5 => Step::Log,
            6 | 7 => Step::Progress(which),
            8 => Step::WithdrawOwn(which),
            _ => Step::WithdrawCall(which),
        };
        self.say(step);
    }

    fn busy(&mut self) {
        let count = 1 + self.random.below(6);
        self.say(Step::Busy(count));
        for _ in 0..self.random.below(4) {
            self.call();
        }
    }

    fn owner(&mut self) {
        let which = self.which();
        let step = match self.random.below(4) {
            0 => Step::Refuse(which),
            1 => Step::Ask(which),
            _ => Step::Reply(which),
        };
        self.say(step);
    }

    fn leave(&mut self) {
        // Now and then a caller that was answered long ago.
        let which = self.random.below(160);
        let step = if self.random.percent(50) {
            Step::Gone(which)
        } else {
            Step::Cancel(which)
        };
        self.say(step);
    }

    fn noise(&mut self) {
        let step = if self.random.percent(50) {
            Step::Stray(self.random.pick(Stray::ALL))
        } else {
            Step::Garbage(self.random.pick(Garbage::ALL))
        };
        self.say(step);
    }

    fn message(&mut self) {
        match self.random.below(10) {
            0..4 => self.answer(),
            4..7 => self.talk(),
            7 => self.noise(),
            8 => {
                let how = self.random.pick(Welcome::ALL);
                self.say(Step::Welcome(0, how));
            }
            _ => {
                let server = self.server;
                self.say(Step::Greet(server));
            }
        }
    }

    fn batch(&mut self) {
        let count = 2 + self.random.below(3);
        self.say(Step::Batch(count));
        for _ in 0..count {
            self.message();
        }
    }

    fn stale(&mut self) {
        let back = self.random.below(3);
        self.say(Step::Stale(back));
        match self.random.below(6) {
            0 => self.say(Step::Up),
            1 | 2 => {
                let kind = self.random.pick(&DOWNS);
                self.say(Step::Down(kind));
            }
            3 => self.say(Step::Oversize),
            4 => self.fail(),
            _ if self.random.percent(30) => self.owner(),
            _ => self.message(),
        }
    }

    fn fail(&mut self) {
        let which = self.random.below(u8::MAX);
        let status = self.random.pick(&[0, 401, 404, 429, 500, 503]);
        self.say(Step::Fail(which, status));
    }
}
