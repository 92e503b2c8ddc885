#!/bin/sh
# The program of kcat: admin shows what there is, for kcat makes topics only by writing to them.
set -eu
step=$1 bootstrap=$2 topic=$3
shift 3
format='record\t%p\t%o\t%k\t%S\t%s\t%h\n'

record() { # record N: the key and the value of record N
  n=$1
  if [ $((n % 20)) = 19 ]; then value=; else value="value-$n-$padding"; fi
  printf 'key-%d\t%s\n' $((n % 7)) "$value"
}

case $step in
  produce)
    padding=$(printf '%060d' 0 | tr 0 x)
    count=$1
    shift
    for kind in "$@"; do
      if [ "$kind" = idempotent ]; then option=enable.idempotence=true; else option=compression.codec=$kind; fi
      n=0
      while [ "$n" -lt "$count" ]; do # headers are those of the command line: one record at a time
        record "$n" | kcat -q -b "$bootstrap" -P -t "$topic-$kind" -K '	' -Z -X "$option" \
          -X topic.partitioner=consistent -H "n=$n" -H empty=
        n=$((n + 1))
      done
    done
    ;;
  consume) kcat -q -b "$bootstrap" -C -t "$topic" -o beginning -c "$1" -u -f "$format" ;;
  member)
    exec kcat -q -b "$bootstrap" -G "$1" -X auto.offset.reset=earliest -X heartbeat.interval.ms=500 \
      -X auto.commit.interval.ms=200 -u -f "$format" "$topic"
    ;;
  *) echo "no step $step" >&2; exit 2 ;;
esac
