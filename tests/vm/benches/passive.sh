#!/bin/sh
bench_passive --pairs 12 --seconds 0.05 || exit 1
bench_passive --pairs 6 --seconds 0.05 --with fault_time
