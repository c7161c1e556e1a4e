/* Messages on the socket: JSON after its length, with file descriptors. runtime/protocol.py is the
   owner's side. */

#include "supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int receive_exactly(int socket, char *into, size_t count) {
    while (count) {
        ssize_t got = recv(socket, into, count, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        into += got;
        count -= (size_t)got;
    }
    return 1;
}

int receive(int socket, struct message *message) {
    union { char buffer[CMSG_SPACE(MOST_FDS * sizeof(int))]; struct cmsghdr align; } ancillary;
    uint32_t length = 0;
    struct iovec head = {&length, sizeof length};
    struct msghdr header = {
        .msg_iov = &head, .msg_iovlen = 1,
        .msg_control = ancillary.buffer, .msg_controllen = sizeof ancillary.buffer,
    };
    ssize_t got;
    memset(message, 0, sizeof *message);
    while ((got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
    if (got <= 0) return 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        message->count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(message->fds, CMSG_DATA(c), message->count * sizeof(int));
    }
    if (!receive_exactly(socket, (char *)&length + got, sizeof length - (size_t)got)) return 0;
    length = ntohl(length);
    message->bytes = malloc((size_t)length + 1);
    if (!message->bytes || !receive_exactly(socket, message->bytes, length)) return 0;
    message->body = json_parse(message->bytes, length);
    return message->body != NULL;
}

int reply(int socket, const struct text *body, const int *fds, size_t count) {
    union { char buffer[CMSG_SPACE(MOST_FDS * sizeof(int))]; struct cmsghdr align; } ancillary;
    uint32_t length = htonl((uint32_t)body->length);
    struct iovec parts[] = {{&length, sizeof length}, {body->bytes, body->length}};
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
    if (count) {
        memset(&ancillary, 0, sizeof ancillary);
        header.msg_control = ancillary.buffer;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    }
    for (;;) {
        ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return -1;
        header.msg_controllen = 0;
        while (header.msg_iovlen && (size_t)sent >= header.msg_iov->iov_len) {
            sent -= (ssize_t)header.msg_iov->iov_len;
            header.msg_iov++;
            header.msg_iovlen--;
        }
        if (!header.msg_iovlen) return 0;
        header.msg_iov->iov_base = (char *)header.msg_iov->iov_base + sent;
        header.msg_iov->iov_len -= (size_t)sent;
    }
}

void free_message(struct message *message) {
    for (size_t i = 0; i < message->count; i++)
        if (message->fds[i] >= 0) close(message->fds[i]);
    json_free(message->body);
    free(message->bytes);
    memset(message, 0, sizeof *message);
}
