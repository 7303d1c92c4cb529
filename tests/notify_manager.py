# SPDX-License-Identifier: Apache-2.0
"""notify_manager.py SOCKET COMMAND...: runs COMMAND as a service manager does, with NOTIFY_SOCKET (@: abstract) and a
watchdog. Prints each message with its sender (`heaptap`: COMMAND's own process) and what the descriptors with it hold,
then COMMAND's exit status. COMMAND's output goes to stderr."""
import os
import socket
import struct
import sys

name, command = sys.argv[1], sys.argv[2:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
if name[0] != '@' and os.path.exists(name):
    os.unlink(name)
manager.bind('\0' + name[1:] if name[0] == '@' else name)
manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def main_process():
    os.environ.update(NOTIFY_SOCKET=name, WATCHDOG_USEC='30000000', WATCHDOG_PID=str(os.getpid()))


def show(text, ancillary, main):
    sender, kept = '?', ''
    for level, kind, data in ancillary:
        if kind == socket.SCM_CREDENTIALS:
            pid = struct.unpack('iII', data)[0]
            sender = 'heaptap' if pid == main else str(pid)
        elif kind == socket.SCM_RIGHTS:
            for descriptor in struct.unpack('%di' % (len(data) // 4), data):
                kept += ', with ' + os.pread(descriptor, 100, 0).decode()
                os.close(descriptor)
    print('from %s: %s%s' % (sender, text.decode().strip().replace('\n', '|'), kept))


pid = os.fork()
if pid == 0:
    main_process()
    os.dup2(2, 1)
    os.execvp(command[0], command)
_, status = os.waitpid(pid, 0)
manager.setblocking(False)
while True:
    try:
        message, data, _, _ = manager.recvmsg(4096, 4096)
    except BlockingIOError:
        break
    show(message, data, pid)
print('status %d' % os.waitstatus_to_exitcode(status))
