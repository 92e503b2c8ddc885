"""Finds the replicas that a policy requires, or says why there are none. Pure.

Map:    request.py (the caller's question), counts.py (how many voters `survive` needs), plan.py (a
        policy over candidates becomes constraints), orbits.py (interchangeable brokers), search.py
        (exact), floors.py (bounds that need a search of their own), many.py (thousands of
        partitions), turns.py (which rule puts a replica where leaders should be), patterns.py (all
        best placements, if the emptiest broker is a bad choice), leaders.py (which broker leads),
        chains.py (leaderships handed on until they are even), judge.py (existing replicas, by the
        same constraints), repair.py (the fewest moves that make them right), refusal.py (why not),
        unlabelled.py (brokers that lack labels), relaxing.py (the nearest policy that can be met),
        newcomers.py (the brokers with which it could be), solve.py (all of it: policy and brokers
        in, placements or a refusal out).
Source: design section 7; decision 0008."""
