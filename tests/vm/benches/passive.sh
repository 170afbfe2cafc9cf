#!/bin/sh
bench_passive --pairs 12 || exit 1
bench_passive --pairs 6 --with fault_time
