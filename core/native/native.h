/* What the files of the native core share: statuses, exported functions, loads that know no byte order.
 *
 * The caller gives all memory and owns it. No function keeps state between calls, none allocates.
 * A structure that Python fills or reads is defined here, listed in version.c, and has its ctypes twin in
 * structs.py; library.py compares the sizes of both before it calls anything else.
 */
#ifndef TRACELANE_NATIVE_H
#define TRACELANE_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* To be raised with every change of a function's arguments or of a structure, here and in structs.py. */
#define TL_VERSION 1

#define TL_API __attribute__((visibility("default")))

/* What a call returns. */
enum {
    TL_OK = 0,       /* all that was asked for is done */
    TL_NEED = 1,     /* a capacity does not suffice; nothing is lost, the call can be repeated with more */
    TL_STOPPED = 2,  /* the input is not accepted from some byte on, which the call names */
    TL_CANCELLED = 3 /* the caller's flag was set */
};

/* A little-endian load of 8 bytes at any address: the byte at the lowest address is the lowest of the value. */
static inline uint64_t tl_load64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* The same of 4 bytes. */
static inline uint32_t tl_load32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

/* Write the size of each structure that Python shares, in the order of structs.py, and return their number. */
TL_API uint32_t tl_struct_sizes(uint32_t *sizes, uint32_t capacity);

/* Return TL_VERSION of the sources that this library was made of. */
TL_API uint32_t tl_version(void);

#endif
