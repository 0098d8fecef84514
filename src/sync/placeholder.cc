#include "sync/group.h"
