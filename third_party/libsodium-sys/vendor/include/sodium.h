/* What libzmq includes: the headers of the functions that are compiled here. */

#include "sodium/core.h"
#include "sodium/crypto_box.h"
#include "sodium/crypto_generichash.h"
#include "sodium/crypto_scalarmult.h"
#include "sodium/crypto_secretbox.h"
#include "sodium/randombytes.h"
#include "sodium/utils.h"
