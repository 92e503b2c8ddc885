"""Groups that have lost voters.

Map:    arbiter.py         which configurations may be in force, and who may lead without a majority
        grant_progress.py  how far a group is on its way to such a leader: table of transitions
        member_reports.py  replicas that cannot vote or take nothing; brokers without contact
        sides.py           voters that do not hear each other, and which side continues
        promotion.py       which observer votes meanwhile
        survivors.py       what is left of a group that cannot continue"""
