//! GT's changes to libzmq, whose sources in `vendor/` are as published. Each text is there exactly once: with other
//! sources the build fails instead of leaving a change out.

use std::fs;
use std::path::Path;

struct Change {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const fn change(file: &'static str, from: &'static str, to: &'static str) -> Change {
    Change { file, from, to }
}

/// A context that cannot have its poller, for want of a descriptor, is an error and not an abort.
const POLLERS: &[Change] = &[
    change(
        "epoll.cpp",
        "    errno_assert (_epoll_fd != epoll_retired_fd);\n}",
        "    //  GT: without a descriptor it is not valid, see ctx_t::start.\n    errno_assert (valid () || errno == EMFILE || errno == ENFILE);\n}",
    ),
    change(
        "epoll.hpp",
        "    ~epoll_t () ZMQ_OVERRIDE;\n",
        "    ~epoll_t () ZMQ_OVERRIDE;\n    bool valid () const { return _epoll_fd != epoll_retired_fd; }\n",
    ),
    change(
        "kqueue.cpp",
        "    errno_assert (kqueue_fd != -1);\n",
        "    //  GT: without a descriptor it is not valid, see ctx_t::start.\n    errno_assert (valid () || errno == EMFILE || errno == ENFILE);\n",
    ),
    change(
        "kqueue.hpp",
        "    ~kqueue_t () ZMQ_FINAL;\n",
        "    ~kqueue_t () ZMQ_FINAL;\n    bool valid () const { return kqueue_fd != -1; }\n",
    ),
    change(
        "io_thread.hpp",
        "    mailbox_t *get_mailbox ();\n",
        "    mailbox_t *get_mailbox ();\n    bool valid () const { return _mailbox.valid () && _poller->valid (); }\n",
    ),
    change(
        "io_thread.cpp",
        "    if (_mailbox.get_fd () != retired_fd) {",
        "    if (valid ()) {",
    ),
    change(
        "reaper.hpp",
        "    mailbox_t *get_mailbox ();\n",
        "    mailbox_t *get_mailbox ();\n    bool valid () const { return _poller && _poller->valid (); }\n",
    ),
    change(
        "reaper.cpp",
        "    if (_mailbox.get_fd () != retired_fd) {",
        "    if (_poller->valid ()) {",
    ),
    change(
        "ctx.cpp",
        "    if (!_reaper->get_mailbox ()->valid ())\n        goto fail_cleanup_reaper;",
        "    //  GT: a reaper that was not started cannot be stopped.\n    if (!_reaper->valid ()) {\n        delete _reaper;\n        _reaper = NULL;\n        errno = EMFILE;\n        goto fail_cleanup_slots;\n    }",
    ),
    change(
        "ctx.cpp",
        "        if (!io_thread->get_mailbox ()->valid ()) {\n            delete io_thread;\n",
        "        if (!io_thread->valid ()) {\n            delete io_thread;\n            errno = EMFILE;\n",
    ),
    change(
        "ctx.cpp",
        "    _reaper->stop ();\n    delete _reaper;\n    _reaper = NULL;\n\nfail_cleanup_slots:\n    _slots.clear ();\n",
        "    _reaper->stop ();\n    delete _reaper;\n    _reaper = NULL;\n    errno = EMFILE;\n\nfail_cleanup_slots:\n    _slots.clear ();\n",
    ),
];

/// Connections for which a process has no descriptor are told so, and counted. They would else wait in the listener's
/// queue, and the thread would look at them for ever.
const LISTENERS: &[Change] = &[
    change(
        "stream_listener_base.hpp",
        "    virtual void create_engine (fd_t fd);\n",
        r#"    virtual void create_engine (fd_t fd);

    //  GT: accepts a connection by the descriptor that is kept for this, tells the peer that there is no other (a
    //  greeting with a mechanism of that name), and closes it.
    void refuse_connection ();

    //  GT: the descriptor that is kept.
    fd_t _reserve;
"#,
    ),
    change(
        "stream_listener_base.cpp",
        "    _handle (static_cast<handle_t> (NULL)),\n    _socket (socket_)\n{\n}\n",
        r#"    _handle (static_cast<handle_t> (NULL)),
    _socket (socket_),
    _reserve (::open ("/dev/null", O_RDONLY | O_CLOEXEC))
{
}

static std::atomic<uint64_t> refused_connections (0);

extern "C" uint64_t gt_zmq_refused ()
{
    return refused_connections.load ();
}

void zmq::stream_listener_base_t::refuse_connection ()
{
    static const unsigned char greeting[64] = {
      0xFF, 0,   0,   0,   0,   0,   0,   0,   1,   0x7F, 3, 0,
      'G',  'T', '-', 'F', 'U', 'L', 'L'};
    if (_reserve != retired_fd)
        ::close (_reserve);
    //  The connection may be gone, and accept would wait for another one.
    struct pollfd waiting = {_s, POLLIN, 0};
    const bool is_there = ::poll (&waiting, 1, 0) == 1;
    const fd_t fd = is_there ? ::accept (_s, NULL, NULL) : retired_fd;
    if (fd != retired_fd) {
        refused_connections++;
        zmq::set_nosigpipe (fd);
        unblock_socket (fd);
        ssize_t rc = ::send (fd, greeting, sizeof (greeting), MSG_NOSIGNAL);
        (void) rc;
        ::shutdown (fd, SHUT_WR);
        //  What is unread when it is closed would reset the connection.
        char unread[512];
        rc = ::recv (fd, unread, sizeof (unread), MSG_DONTWAIT);
        ::close (fd);
    }
    _reserve = ::open ("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd == retired_fd) {
        //  Another thread was faster: this one must not look at it without a pause.
        const struct timespec pause = {0, 1000000};
        nanosleep (&pause, NULL);
    }
}
"#,
    ),
    change(
        "stream_listener_base.cpp",
        "    zmq_assert (!_handle);\n",
        "    zmq_assert (!_handle);\n    if (_reserve != retired_fd)\n        ::close (_reserve);\n",
    ),
    change(
        "stream_listener_base.cpp",
        "#include \"raw_engine.hpp\"\n",
        "#include \"raw_engine.hpp\"\n#include \"ip.hpp\"\n\n#include <atomic>\n#include <fcntl.h>\n#include <poll.h>\n#include <sys/socket.h>\n#include <time.h>\n#ifndef MSG_NOSIGNAL\n#define MSG_NOSIGNAL 0\n#endif\n",
    ),
    change(
        "tcp_listener.cpp",
        "    //  TODO: Handle specific errors like ENFILE/EMFILE etc.\n    if (fd == retired_fd) {\n",
        "    if (fd == retired_fd) {\n        if (errno == EMFILE || errno == ENFILE)\n            refuse_connection ();\n",
    ),
    change(
        "ipc_listener.cpp",
        "    //  TODO: Handle specific errors like ENFILE/EMFILE etc.\n    if (fd == retired_fd) {\n",
        "    if (fd == retired_fd) {\n        if (errno == EMFILE || errno == ENFILE)\n            refuse_connection ();\n",
    ),
    change(
        "ipc_listener.cpp",
        "                      || errno == ECONNABORTED || errno == EPROTO\n                      || errno == ENFILE);",
        "                      || errno == ECONNABORTED || errno == EPROTO\n                      || errno == EMFILE || errno == ENFILE\n                      || errno == ENOBUFS || errno == ENOMEM);",
    ),
];

/// A peer's messages have one part each: those of several would be held until the last one is there. The other parts of
/// a message whose connection breaks are gone, and no reason to abort, if its socket was closed just before.
const PARTS: &[Change] = &[
    change(
        "session_base.cpp",
        "    if (_pipe && _pipe->write (msg_)) {\n        const int rc = msg_->init ();",
        "    if (msg_->flags () & msg_t::more) {\n        errno = EPROTO;\n        return -1;\n    }\n    if (_pipe && _pipe->write (msg_)) {\n        const int rc = msg_->init ();",
    ),
    change(
        "session_base.cpp",
        "        rc = pull_msg (&msg);\n        errno_assert (rc == 0);\n",
        "        rc = pull_msg (&msg);\n        //  GT: the pipe has no more if its socket is closed.\n        if (rc != 0)\n            _incomplete_in = false;\n",
    ),
];

/// High-water marks bound bytes, too: a message counts once, and once more for each 64 KiB. A ROUTER may widen the
/// pipe of a peer.
const WEIGHTS: &[Change] = &[
    change(
        "pipe.cpp",
        "#include \"ypipe_conflate.hpp\"\n",
        "#include \"ypipe_conflate.hpp\"\n\n//  GT: what a message counts for in high-water marks.\nstatic uint64_t weight_of (const zmq::msg_t &msg_)\n{\n    return msg_.is_delimiter () ? 0 : 1 + (msg_.size () >> 16);\n}\n",
    ),
    change(
        "pipe.cpp",
        "    if (!(msg_->flags () & msg_t::more) && !msg_->is_routing_id ())\n        _msgs_read++;\n\n    if (_lwm > 0 && _msgs_read % _lwm == 0)\n        send_activate_write (_peer, _msgs_read);\n",
        "    if (!(msg_->flags () & msg_t::more) && !msg_->is_routing_id ())\n        _msgs_read += weight_of (*msg_);\n\n    if (_lwm > 0 && _msgs_read - _msgs_reported >= uint64_t (_lwm)) {\n        _msgs_reported = _msgs_read;\n        send_activate_write (_peer, _msgs_read);\n    }\n",
    ),
    change(
        "pipe.cpp",
        "    const bool is_routing_id = msg_->is_routing_id ();\n    _out_pipe->write (*msg_, more);\n    if (!more && !is_routing_id)\n        _msgs_written++;\n",
        "    const bool is_routing_id = msg_->is_routing_id ();\n    if (!more && !is_routing_id)\n        _msgs_written += weight_of (*msg_);\n    _out_pipe->write (*msg_, more);\n",
    ),
    change(
        "pipe.cpp",
        "            _msgs_written--;\n",
        "            _msgs_written -= weight_of (msg);\n",
    ),
    change("pipe.cpp", "    _msgs_read (0),\n", "    _msgs_read (0),\n    _msgs_reported (0),\n"),
    change(
        "pipe.hpp",
        "    uint64_t _msgs_read;\n",
        "    uint64_t _msgs_read;\n    //  GT: how many of them the peer has been told of.\n    uint64_t _msgs_reported;\n",
    ),
    change(
        "pipe.cpp",
        "    set_hwms (inhwm_, outhwm_);\n}\n",
        "    set_hwms (inhwm_, outhwm_);\n    //  GT: there may be room again.\n    if (!_out_active && _state == active && check_hwm ()) {\n        _out_active = true;\n        _sink->write_activated (this);\n    }\n}\n",
    ),
    change(
        "router.cpp",
        "        case ZMQ_PROBE_ROUTER:\n",
        r#"        //  GT: the peer with this routing id may have so many messages under way.
        case 9001: {
            const size_t head = sizeof (int);
            if (optvallen_ <= head)
                break;
            int most = 0;
            memcpy (&most, optval_, head);
            const unsigned char *id =
              static_cast<const unsigned char *> (optval_) + head;
            out_pipe_t *const found = lookup_out_pipe (
              blob_t (const_cast<unsigned char *> (id), optvallen_ - head,
                      zmq::reference_tag_t ()));
            if (!found) {
                errno = EHOSTUNREACH;
                return -1;
            }
            found->pipe->set_hwms (most, options.sndhwm);
            found->pipe->send_hwms_to_peer (options.sndhwm, most);
            return 0;
        }

        case ZMQ_PROBE_ROUTER:
"#,
    ),
];

/// While a full pipe keeps a connection from being read, nothing can be heard of the peer: it is not silent.
const HEARTBEATS: &[Change] = &[
    change(
        "stream_engine_base.cpp",
        "        _has_ttl_timer = false;\n        error (timeout_error);\n",
        "        if (_input_stopped) {\n            add_timer (1000, heartbeat_ttl_timer_id);\n            return;\n        }\n        _has_ttl_timer = false;\n        error (timeout_error);\n",
    ),
    change(
        "stream_engine_base.cpp",
        "        _has_timeout_timer = false;\n        error (timeout_error);\n",
        "        if (_input_stopped) {\n            add_timer (1000, heartbeat_timeout_timer_id);\n            return;\n        }\n        _has_timeout_timer = false;\n        error (timeout_error);\n",
    ),
];

const ALL: &[&[Change]] = &[POLLERS, LISTENERS, PARTS, WEIGHTS, HEARTBEATS];

/// Copies libzmq's sources with all changes.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the output folder is writable");
    for entry in fs::read_dir(from).expect("libzmq's sources are readable") {
        let path = entry.expect("an entry of a folder").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_string();
        let mut text = fs::read_to_string(&path).expect("libzmq's sources are text");
        for change in ALL.iter().flat_map(|group| group.iter()).filter(|it| it.file == name) {
            let found = text.matches(change.from).count();
            assert_eq!(found, 1, "{}: found {} times: {}", name, found, change.from);
            text = text.replacen(change.from, change.to, 1);
        }
        fs::write(to.join(name), text).expect("the output folder is writable");
    }
    for change in ALL.iter().flat_map(|group| group.iter()) {
        assert!(from.join(change.file).exists(), "{} is not there", change.file);
    }
}
