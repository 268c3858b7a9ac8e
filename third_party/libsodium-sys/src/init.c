/* Initializes what of libsodium is compiled here. It stands in the place of libsodium's sodium/core.c, which also
 * initializes functions that GT has no use for. */

#include <pthread.h>
#include <stdlib.h>

#include "core.h"
#include "crypto_generichash.h"
#include "private/implementations.h"
#include "private/mutex.h"
#include "randombytes.h"
#include "runtime.h"
#include "utils.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int initialized;

int
sodium_crit_enter(void)
{
    return pthread_mutex_lock(&lock);
}

int
sodium_crit_leave(void)
{
    return pthread_mutex_unlock(&lock);
}

int
sodium_init(void)
{
    int done_before;

    if (sodium_crit_enter() != 0) {
        return -1;
    }
    done_before = initialized;
    if (!done_before) {
        _sodium_runtime_get_cpu_features();
        randombytes_stir();
        _sodium_alloc_init();
        _crypto_generichash_blake2b_pick_best_implementation();
        _crypto_onetimeauth_poly1305_pick_best_implementation();
        _crypto_scalarmult_curve25519_pick_best_implementation();
        _crypto_stream_chacha20_pick_best_implementation();
        _crypto_stream_salsa20_pick_best_implementation();
        initialized = 1;
    }
    if (sodium_crit_leave() != 0) {
        return -1;
    }
    return done_before;
}

void
sodium_misuse(void)
{
    abort();
}
