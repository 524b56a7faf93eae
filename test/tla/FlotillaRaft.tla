---------------------------- MODULE FlotillaRaft ----------------------------
(***************************************************************************)
(* What the consensus core may do, in the words of the public Raft         *)
(* specification: Timeout, RequestVote, BecomeLeader, ClientRequest,       *)
(* AdvanceCommitIndex, the message handlers, Restart. Added are what a     *)
(* disk holds and what is still on its way there, joint configurations,    *)
(* snapshots, and disks as members: a name that comes back with another    *)
(* disk is another server here. Left out is what no safety rests on:       *)
(* PreVote, read rounds, the pace of replication (nextIndex), and          *)
(* compaction, so a log here keeps all that was ever in it.                *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
  Server,    \* disks; one that was wiped or put back is another server
  Name       \* [Server -> the name that a disk goes by in messages]

Nil == ""
Follower == "Follower"
Candidate == "Candidate"
Leader == "Leader"

VARIABLES
  \* Of a server: lost at a crash, and restored from the disk.
  currentTerm, votedFor, log,
  \* Of a server: lost at a crash.
  state, commitIndex, votesGranted, matchIndex,
  matched,      \* how far the log is known to equal that of this term's leader
  told,         \* the configuration a server begins with before it has a log
  led,          \* the last leadership given up: its term, and the log it ended with
  \* What a disk holds, what is on its way there in order, and how many writes of this life are there.
  disk, writes, done,
  \* Answers decided and not handed out yet; messages that wait for a write; messages under way.
  pending, gated, messages,
  \* History: who led which term; the one sequence of committed entries, and the terms they were committed in; the disks
  \* that the last commit rested on.
  leaders, committed, committedIn, lastCommit

serverVars == <<currentTerm, votedFor, state>>
logVars == <<log, commitIndex, matched, told>>
leaderVars == <<votesGranted, matchIndex, led>>
diskVars == <<disk, writes, done>>
messageVars == <<pending, gated, messages>>
historyVars == <<leaders, committed, committedIn, lastCommit>>
vars == <<serverVars, logVars, leaderVars, diskVars, messageVars, historyVars>>

----------------------------------------------------------------------------
\* Logs and configurations

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Largest(a, b) == IF a > b THEN a ELSE b
Smallest(a, b) == IF a < b THEN a ELSE b

TermAt(entries, index) == IF index \in 1..Len(entries) THEN entries[index].term ELSE 0
LastTerm(entries) == TermAt(entries, Len(entries))
Prefix(entries, index) == SubSeq(entries, 1, index)
IsPrefix(short, long) == Len(short) <= Len(long) /\ Prefix(long, Len(short)) = short

NoConfiguration == [voters |-> {}, outgoing |-> {}, learners |-> {}]

\* Where the last configuration of a log stands; 0 when it has none.
ConfigIndexOf(entries) ==
  LET places == {k \in 1..Len(entries) : entries[k].type = "configuration"}
  IN IF places = {} THEN 0 ELSE Max(places)
ConfigOf(entries, before) ==
  LET k == ConfigIndexOf(entries) IN IF k = 0 THEN before ELSE entries[k].members

\* In force from the moment it is appended (Raft paper 6).
ConfigIndex(i) == ConfigIndexOf(log[i])
Config(i) == ConfigOf(log[i], told[i])

MembersOf(config) == config.voters \union config.outgoing \union config.learners
IsJoint(config) == config.outgoing # {}
IsMajority(part, whole) == Cardinality(part \intersect whole) * 2 > Cardinality(whole)

\* A majority of the voters and, while a change is joint, one of the old voters as well.
IsQuorum(part, config) ==
  /\ IsMajority(part, config.voters)
  /\ IsJoint(config) => IsMajority(part, config.outgoing)

----------------------------------------------------------------------------
\* Disks

\* term 0: the write leaves term and vote as they are. first: everything from there on is replaced.
Wrote(d, w, count) ==
  [term |-> IF w.term = 0 THEN d.term ELSE w.term,
   votedFor |-> IF w.term = 0 THEN d.votedFor ELSE w.votedFor,
   log |-> IF count = 0 THEN d.log ELSE Prefix(d.log, w.first - 1) \o Prefix(w.entries, count)]

RECURSIVE After(_, _)
After(d, queue) ==
  IF queue = <<>> THEN d ELSE After(Wrote(d, Head(queue), Len(Head(queue).entries)), Tail(queue))

\* The disk once the first `token` writes of this life are on it.
DiskAt(i, token) == After(disk[i], Prefix(writes[i], token - done[i]))
Issued(i) == done[i] + Len(writes[i])

\* What a crash may leave: some of the writes in order, and of the next one term and vote and some of its entries. A write
\* that replaces the whole log by a snapshot's place in it is there or not.
Survivors(i) ==
  {DiskAt(i, t) : t \in done[i]..Issued(i)} \union
  UNION {{Wrote(DiskAt(i, t), writes[i][t - done[i] + 1], n) :
            n \in 0..Len(writes[i][t - done[i] + 1].entries)} :
          t \in {t \in done[i]..Issued(i) - 1 : ~writes[i][t - done[i] + 1].isWhole}}

\* Handed to the disk. Whether it is what had to be written is judged in Ready.
Write(i, w) ==
  /\ w.first <= Len(DiskAt(i, Issued(i)).log) + 1
  /\ writes' = [writes EXCEPT ![i] = Append(@, w)]
  /\ UNCHANGED <<serverVars, logVars, leaderVars, disk, done, messageVars, historyVars>>

\* The disk reports. What waited for it leaves.
Persisted(i, token) ==
  /\ token \in done[i]..Issued(i)
  /\ disk' = [disk EXCEPT ![i] = DiskAt(i, token)]
  /\ writes' = [writes EXCEPT ![i] = SubSeq(@, token - done[i] + 1, Len(@))]
  /\ done' = [done EXCEPT ![i] = token]
  /\ messages' = messages \union {g.message : g \in {g \in gated[i] : g.token <= token}}
  /\ gated' = [gated EXCEPT ![i] = {g \in @ : g.token > token}]
  /\ UNCHANGED <<serverVars, logVars, leaderVars, pending, historyVars>>

\* The end of a turn: once all that was handed over is on the disk, it holds what the server holds.
Ready(i) ==
  /\ LET d == DiskAt(i, Issued(i))
     IN d.term = currentTerm[i] /\ d.votedFor = votedFor[i] /\ d.log = log[i]
  /\ pending' = [pending EXCEPT ![i] = {}]
  /\ UNCHANGED <<serverVars, logVars, leaderVars, diskVars, gated, messages, historyVars>>

----------------------------------------------------------------------------
\* Messages

\* What a message says of its sender's disk must be there once it leaves.
IsPromiseKept(i, m, d) ==
  /\ d.term >= m.mterm
  /\ m.mtype = "RequestVoteRequest" => d.term > m.mterm \/ d.votedFor = Name[i]
  /\ (m.mtype = "RequestVoteResponse" /\ m.mvoteGranted) => d.term > m.mterm \/ d.votedFor = m.mdest
  /\ (m.mtype = "AppendEntriesResponse" /\ m.msuccess /\ currentTerm[i] = m.mterm) =>
       /\ Len(d.log) >= m.mmatchIndex
       /\ Prefix(d.log, m.mmatchIndex) = Prefix(log[i], m.mmatchIndex)

\* The log that a leader of that term speaks of: its own, or the one it had when it gave up.
LogOfTerm(i, term) ==
  IF state[i] = Leader /\ currentTerm[i] = term THEN log[i] ELSE led[i].log
HasLed(i, term) == (state[i] = Leader /\ currentTerm[i] = term) \/ led[i].term = term

\* Whether the server has come to say this. A refusal says no more than a term.
MaySay(i, m) ==
  CASE m.mtype = "RequestVoteRequest" ->
         [mtype |-> m.mtype, mterm |-> m.mterm, mlastLogTerm |-> m.mlastLogTerm,
          mlastLogIndex |-> m.mlastLogIndex] \in pending[i]
    [] m.mtype = "RequestVoteResponse" /\ m.mvoteGranted ->
         [mtype |-> m.mtype, mterm |-> m.mterm, mdest |-> m.mdest] \in pending[i]
    [] m.mtype = "AppendEntriesResponse" /\ m.msuccess ->
         [mtype |-> m.mtype, mterm |-> m.mterm, mmatchIndex |-> m.mmatchIndex] \in pending[i]
    [] m.mtype = "AppendEntriesRequest" ->
         LET entries == LogOfTerm(i, m.mterm)
         IN /\ HasLed(i, m.mterm)
            /\ m.mprevLogTerm = TermAt(entries, m.mprevLogIndex)
            /\ m.mentries = SubSeq(entries, m.mprevLogIndex + 1, m.mprevLogIndex + Len(m.mentries))
            /\ m.mprevLogIndex + Len(m.mentries) <= Len(entries)
            /\ m.mcommitIndex <= commitIndex[i]
    [] m.mtype = "Heartbeat" ->
         /\ HasLed(i, m.mterm)
         /\ m.mcommitIndex <= commitIndex[i]
         /\ \E j \in Server : Name[j] = m.mdest /\ m.mcommitIndex <= matchIndex[i][j]
    [] OTHER -> m.mterm <= currentTerm[i]

\* Handed to the network, to leave once the first `token` writes are on the disk. isLost: it never arrives.
Send(i, m, token, isLost) ==
  /\ m.msource = i
  /\ token <= Issued(i)
  /\ MaySay(i, m)
  /\ IsPromiseKept(i, m, DiskAt(i, Largest(token, done[i])))
  /\ CASE isLost -> UNCHANGED <<gated, messages>>
       [] ~isLost /\ token <= done[i] -> messages' = messages \union {m} /\ UNCHANGED gated
       [] OTHER ->
            /\ gated' = [gated EXCEPT ![i] = @ \union {[token |-> token, message |-> m]}]
            /\ UNCHANGED messages
  /\ UNCHANGED <<serverVars, logVars, leaderVars, diskVars, pending, historyVars>>

IsFor(i, m) == m \in messages /\ m.mdest = Name[i]

\* A message is forgotten once it has arrived for the last time; before that it may arrive again.
Forget(m, isLast) == messages' = IF isLast THEN messages \ {m} ELSE messages

Answer(i, m) == pending' = [pending EXCEPT ![i] = @ \union {m}]

----------------------------------------------------------------------------
\* Terms and elections

\* A leadership that ends is remembered, for messages of it may still be handed out.
GiveUp(i) ==
  led' = IF state[i] = Leader
         THEN [led EXCEPT ![i] = [term |-> currentTerm[i], log |-> log[i]]]
         ELSE led

NewTerm(i, term) ==
  /\ currentTerm' = [currentTerm EXCEPT ![i] = term]
  /\ votedFor' = [votedFor EXCEPT ![i] = Nil]
  /\ state' = [state EXCEPT ![i] = Follower]
  /\ matched' = [matched EXCEPT ![i] = commitIndex[i]]
  /\ GiveUp(i)

\* The message is not used up: it is looked at again in its own term.
UpdateTerm(i, m) ==
  /\ IsFor(i, m)
  /\ m.mterm > currentTerm[i]
  /\ NewTerm(i, m.mterm)
  /\ UNCHANGED <<log, commitIndex, told, votesGranted, matchIndex, diskVars, messageVars, historyVars>>

\* A snapshot is sent separately from the messages of the log; it contains the term of the leader that sent it.
UpdateTermBySnapshot(i, term) ==
  /\ term > currentTerm[i]
  /\ \E pair \in leaders : pair[1] = term
  /\ NewTerm(i, term)
  /\ UNCHANGED <<log, commitIndex, told, votesGranted, matchIndex, diskVars, messageVars, historyVars>>

\* Whenever it likes: when to is a matter of liveness, and so are PreVote and transfers.
Timeout(i) ==
  /\ state[i] # Leader
  /\ currentTerm' = [currentTerm EXCEPT ![i] = @ + 1]
  /\ votedFor' = [votedFor EXCEPT ![i] = Name[i]]
  /\ state' = [state EXCEPT ![i] = Candidate]
  /\ votesGranted' = [votesGranted EXCEPT ![i] = {}]
  /\ matched' = [matched EXCEPT ![i] = commitIndex[i]]
  /\ Answer(i, [mtype |-> "RequestVoteRequest", mterm |-> currentTerm[i] + 1,
                mlastLogTerm |-> LastTerm(log[i]), mlastLogIndex |-> Len(log[i])])
  /\ UNCHANGED <<log, commitIndex, told, matchIndex, led, diskVars, gated, messages, historyVars>>

\* It may always give up: an election lost, a quorum not heard from.
StepDown(i) ==
  /\ state[i] # Follower
  /\ state' = [state EXCEPT ![i] = Follower]
  /\ GiveUp(i)
  /\ UNCHANGED <<currentTerm, votedFor, logVars, votesGranted, matchIndex, diskVars, messageVars, historyVars>>

\* A vote. It may be refused for any reason, which changes nothing; it may be said again to the one who has it.
HandleRequestVoteRequest(i, m, isLast) ==
  LET isUpToDate == \/ m.mlastLogTerm > LastTerm(log[i])
                    \/ m.mlastLogTerm = LastTerm(log[i]) /\ m.mlastLogIndex >= Len(log[i])
      candidate == Name[m.msource]
  IN /\ IsFor(i, m)
     /\ m.mtype = "RequestVoteRequest"
     /\ m.mterm = currentTerm[i]
     /\ \/ votedFor[i] = candidate
        \/ votedFor[i] = Nil /\ isUpToDate /\ state[i] # Leader
     /\ votedFor' = [votedFor EXCEPT ![i] = candidate]
     /\ state' = [state EXCEPT ![i] = IF votedFor[i] = Nil THEN Follower ELSE @]
     /\ Answer(i, [mtype |-> "RequestVoteResponse", mterm |-> m.mterm, mdest |-> candidate])
     /\ Forget(m, isLast)
     /\ UNCHANGED <<currentTerm, logVars, leaderVars, diskVars, gated, historyVars>>

HandleRequestVoteResponse(i, m, isLast) ==
  /\ IsFor(i, m)
  /\ m.mtype = "RequestVoteResponse" /\ m.mvoteGranted
  /\ m.mterm = currentTerm[i]
  /\ state[i] = Candidate
  /\ votesGranted' = [votesGranted EXCEPT ![i] = @ \union {m.msource}]
  /\ Forget(m, isLast)
  /\ UNCHANGED <<serverVars, logVars, matchIndex, led, diskVars, pending, gated, historyVars>>

\* The own vote counts once it is on the disk.
BecomeLeader(i) ==
  LET own == IF disk[i].term = currentTerm[i] /\ disk[i].votedFor = Name[i] THEN {i} ELSE {}
  IN /\ state[i] = Candidate
     /\ IsQuorum(votesGranted[i] \union own, Config(i))
     /\ state' = [state EXCEPT ![i] = Leader]
     /\ matchIndex' = [matchIndex EXCEPT ![i] = [j \in Server |-> 0]]
     /\ leaders' = leaders \union {<<currentTerm[i], i>>}
     /\ UNCHANGED <<currentTerm, votedFor, logVars, votesGranted, led, diskVars, messageVars,
                    committed, committedIn, lastCommit>>

----------------------------------------------------------------------------
\* The leader's log

ClientRequest(i, entries) ==
  /\ state[i] = Leader
  /\ \A k \in 1..Len(entries) : entries[k].term = currentTerm[i] /\ entries[k].type # "configuration"
  /\ log' = [log EXCEPT ![i] = @ \o entries]
  /\ UNCHANGED <<serverVars, commitIndex, matched, told, leaderVars, diskVars, messageVars, historyVars>>

\* Whoever is left out begins anew if it comes back.
AppendConfiguration(i, entry) ==
  /\ state[i] = Leader
  /\ entry.term = currentTerm[i] /\ entry.type = "configuration"
  /\ log' = [log EXCEPT ![i] = Append(@, entry)]
  /\ matchIndex' = [matchIndex EXCEPT ![i] =
       [j \in Server |-> IF j \in MembersOf(entry.members) THEN @[j] ELSE 0]]
  /\ UNCHANGED <<serverVars, commitIndex, matched, told, votesGranted, led, diskVars, messageVars, historyVars>>

\* Another disk under the name of a voter belongs only to the old half, with the other voters; the new half has only the other voters.
IsOldHalf(outgoing, voters, new) ==
  \/ outgoing = voters
  \/ /\ {Name[j] : j \in outgoing} = {Name[j] : j \in voters}
     /\ Cardinality(outgoing \ voters) = 1
     /\ new = outgoing \intersect voters

\* Every change begins with a joint step, none before an entry of the own term is committed, and one at a time.
ChangeConfiguration(i, entry) ==
  /\ ConfigIndex(i) <= commitIndex[i]
  /\ ~IsJoint(Config(i))
  /\ TermAt(log[i], commitIndex[i]) = currentTerm[i]
  /\ entry.members.voters # {}
  /\ IsOldHalf(entry.members.outgoing, Config(i).voters, entry.members.voters)
  /\ AppendConfiguration(i, entry)

LeaveJoint(i, entry) ==
  /\ ConfigIndex(i) <= commitIndex[i]
  /\ IsJoint(Config(i))
  /\ entry.members.voters = Config(i).voters
  /\ ~IsJoint(entry.members)
  /\ AppendConfiguration(i, entry)

\* By counting disks, the leader's own like any other, and only for an entry of its own term (Raft paper 5.4.2).
AdvanceCommitIndex(i, index) ==
  LET config == Config(i)
      Holds(j) == IF j = i THEN Len(disk[i].log) >= index /\ Prefix(disk[i].log, index) = Prefix(log[i], index)
                  ELSE matchIndex[i][j] >= index
      isNews == index > Len(committed)
  IN /\ state[i] = Leader
     /\ index \in commitIndex[i] + 1..Len(log[i])
     /\ log[i][index].term = currentTerm[i]
     /\ IsQuorum({j \in MembersOf(config) : Holds(j)}, config)
     /\ commitIndex' = [commitIndex EXCEPT ![i] = index]
     /\ committed' = IF isNews THEN Prefix(log[i], index) ELSE committed
     /\ committedIn' = IF isNews
                       THEN committedIn \o [k \in 1..index - Len(committed) |-> currentTerm[i]]
                       ELSE committedIn
     /\ lastCommit' = [index |-> index, config |-> config]
     /\ UNCHANGED <<serverVars, log, matched, told, leaderVars, diskVars, messageVars, leaders>>

----------------------------------------------------------------------------
\* Replication

\* Only from the first entry that differs is anything replaced (Raft paper, figure 2).
Merge(entries, previous, news) ==
  LET other == {k \in 1..Len(news) : TermAt(entries, previous + k) # news[k].term}
  IN IF other = {} THEN entries
     ELSE Prefix(entries, previous + Min(other) - 1) \o SubSeq(news, Min(other), Len(news))

\* Commit follows the leader no further than the log is known to equal the leader's.
Follow(i, matchedNow, leaderCommit) ==
  /\ matched' = [matched EXCEPT ![i] = matchedNow]
  /\ commitIndex' = [commitIndex EXCEPT ![i] = Largest(@, Smallest(leaderCommit, matchedNow))]

Hears(i, m) ==
  /\ IsFor(i, m)
  /\ m.mterm = currentTerm[i]
  /\ state[i] # Leader
  /\ state' = [state EXCEPT ![i] = Follower]

HandleAppendEntriesRequest(i, m, isLast) ==
  LET previous == m.mprevLogIndex
      reached == Largest(previous + Len(m.mentries), commitIndex[i])
      merged == Merge(log[i], previous, m.mentries)
      isAgreed == previous <= Len(log[i]) /\ TermAt(log[i], previous) = m.mprevLogTerm
  IN /\ m.mtype = "AppendEntriesRequest"
     /\ Hears(i, m)
     /\ IF isAgreed
        THEN /\ Prefix(merged, commitIndex[i]) = Prefix(log[i], commitIndex[i])
             /\ log' = [log EXCEPT ![i] = merged]
             /\ Follow(i, Largest(matched[i], reached), m.mcommitIndex)
             /\ Answer(i, [mtype |-> "AppendEntriesResponse", mterm |-> m.mterm, mmatchIndex |-> reached])
        ELSE UNCHANGED <<log, commitIndex, matched, pending>>
     /\ Forget(m, isLast)
     /\ UNCHANGED <<currentTerm, votedFor, told, leaderVars, diskVars, gated, historyVars>>

\* Heartbeats and notices of the commit index.
HandleHeartbeat(i, m, isLast) ==
  /\ m.mtype = "Heartbeat"
  /\ Hears(i, m)
  /\ Follow(i, matched[i], m.mcommitIndex)
  /\ Forget(m, isLast)
  /\ UNCHANGED <<currentTerm, votedFor, log, told, leaderVars, diskVars, pending, gated, historyVars>>

HandleAppendEntriesResponse(i, m, isLast) ==
  /\ IsFor(i, m)
  /\ m.mtype = "AppendEntriesResponse" /\ m.msuccess
  /\ m.mterm = currentTerm[i]
  /\ state[i] = Leader
  /\ m.mmatchIndex <= Len(log[i])
  /\ matchIndex' = [matchIndex EXCEPT ![i][m.msource] = Largest(@, m.mmatchIndex)]
  /\ Forget(m, isLast)
  /\ UNCHANGED <<serverVars, logVars, votesGranted, led, diskVars, pending, gated, historyVars>>

\* A snapshot holds what is committed and nothing else, so it is as good from a leader of an earlier term.
InstallSnapshot(i, index, term, snapshotTerm) ==
  LET isNews == index > commitIndex[i]
      reached == Largest(commitIndex[i], index)
  IN /\ index <= Len(committed)
     /\ TermAt(committed, index) = term
     /\ state[i] # Leader \/ snapshotTerm < currentTerm[i]
     /\ state' = [state EXCEPT ![i] = IF snapshotTerm = currentTerm[i] THEN Follower ELSE @]
     /\ log' = [log EXCEPT ![i] = IF isNews /\ TermAt(@, index) # term THEN Prefix(committed, index) ELSE @]
     /\ commitIndex' = [commitIndex EXCEPT ![i] = reached]
     /\ matched' = [matched EXCEPT ![i] = IF isNews THEN Largest(@, index) ELSE @]
     /\ Answer(i, [mtype |-> "AppendEntriesResponse", mterm |-> currentTerm[i], mmatchIndex |-> reached])
     /\ UNCHANGED <<currentTerm, votedFor, told, leaderVars, diskVars, gated, messages, historyVars>>

----------------------------------------------------------------------------
\* Crashes

\* found: what the crash left on the disk. applied: what the state on the same disk holds; a log that does not reach it is
\* replaced. commit: what was noted of the commit index.
Recover(i, found, applied, commit) ==
  LET isBehind == TermAt(found.log, applied) # TermAt(committed, applied)
      kept == IF isBehind THEN Prefix(committed, applied) ELSE found.log
      term == Largest(found.term, LastTerm(kept))
  IN /\ applied <= Len(committed)
     /\ commit \in applied..Len(kept)
     /\ disk' = [disk EXCEPT ![i] = found]
     /\ writes' = [writes EXCEPT ![i] = <<>>]
     /\ done' = [done EXCEPT ![i] = 0]
     /\ pending' = [pending EXCEPT ![i] = {}]
     /\ gated' = [gated EXCEPT ![i] = {}]
     /\ log' = [log EXCEPT ![i] = kept]
     /\ currentTerm' = [currentTerm EXCEPT ![i] = term]
     /\ votedFor' = [votedFor EXCEPT ![i] = IF term = found.term THEN found.votedFor ELSE Nil]
     /\ state' = [state EXCEPT ![i] = Follower]
     /\ commitIndex' = [commitIndex EXCEPT ![i] = commit]
     /\ matched' = [matched EXCEPT ![i] = commit]
     /\ votesGranted' = [votesGranted EXCEPT ![i] = {}]
     /\ matchIndex' = [matchIndex EXCEPT ![i] = [j \in Server |-> 0]]
     /\ led' = [led EXCEPT ![i] = [term |-> 0, log |-> <<>>]]
     /\ UNCHANGED <<messages, historyVars>>

Restart(i, found, applied, commit) ==
  /\ found \in Survivors(i)
  /\ Recover(i, found, applied, commit)
  /\ UNCHANGED told

\* A disk that was not there before: empty, or an old copy of another.
Join(i, found, applied, commit, configuration) ==
  /\ disk[i].term = 0 /\ disk[i].log = <<>> /\ currentTerm[i] = 0
  /\ Recover(i, found, applied, commit)
  /\ told' = [told EXCEPT ![i] = configuration]

----------------------------------------------------------------------------

InitWith(entries) ==
  /\ currentTerm = [i \in Server |-> 0]
  /\ votedFor = [i \in Server |-> Nil]
  /\ log = [i \in Server |-> <<>>]
  /\ state = [i \in Server |-> Follower]
  /\ commitIndex = [i \in Server |-> 0]
  /\ matched = [i \in Server |-> 0]
  /\ told = [i \in Server |-> NoConfiguration]
  /\ votesGranted = [i \in Server |-> {}]
  /\ matchIndex = [i \in Server |-> [j \in Server |-> 0]]
  /\ led = [i \in Server |-> [term |-> 0, log |-> <<>>]]
  /\ disk = [i \in Server |-> [term |-> 0, votedFor |-> Nil, log |-> <<>>]]
  /\ writes = [i \in Server |-> <<>>]
  /\ done = [i \in Server |-> 0]
  /\ pending = [i \in Server |-> {}]
  /\ gated = [i \in Server |-> {}]
  /\ messages = {}
  /\ leaders = {}
  /\ committed = entries
  /\ committedIn = [k \in 1..Len(entries) |-> entries[k].term]
  /\ lastCommit = [index |-> 0, config |-> NoConfiguration]

----------------------------------------------------------------------------
\* Guarantees. Each is stated of one server against all, for a trace changes one at a time.

ElectionSafety == \A a, b \in leaders : a[1] = b[1] => a = b

\* Equal place and term: equal entry, and equal past.
RECURSIVE LastAlike(_, _, _)
LastAlike(a, b, k) == IF k = 0 \/ TermAt(a, k) = TermAt(b, k) THEN k ELSE LastAlike(a, b, k - 1)

LogMatchingOf(i) ==
  \A j \in Server \ {i} :
    LET alike == LastAlike(log[i], log[j], Smallest(Len(log[i]), Len(log[j])))
    IN Prefix(log[i], alike) = Prefix(log[j], alike)
LogMatching == \A i \in Server : LogMatchingOf(i)

\* What was committed in a term is in the log of every leader of a later one.
LeaderCompletenessOf(i) ==
  state[i] = Leader =>
    \A k \in 1..Len(committed) :
      committedIn[k] < currentTerm[i] => k <= Len(log[i]) /\ log[i][k] = committed[k]
LeaderCompleteness == \A i \in Server : LeaderCompletenessOf(i)

\* What a server takes as committed is part of the one history.
StateMachineSafetyOf(i) ==
  /\ commitIndex[i] <= Len(log[i])
  /\ commitIndex[i] <= Len(committed)
  /\ Prefix(log[i], commitIndex[i]) = Prefix(committed, commitIndex[i])
StateMachineSafety == \A i \in Server : StateMachineSafetyOf(i)

\* Whose log would win j's vote has all that j takes as committed.
IsAsUpToDate(i, j) ==
  \/ LastTerm(log[i]) > LastTerm(log[j])
  \/ LastTerm(log[i]) = LastTerm(log[j]) /\ Len(log[i]) >= Len(log[j])
HasAllOf(i, j) == IsPrefix(Prefix(log[j], commitIndex[j]), log[i])
UpToDateVoteOf(i) ==
  \A j \in Server \ {i} :
    /\ IsAsUpToDate(i, j) => HasAllOf(i, j)
    /\ IsAsUpToDate(j, i) => HasAllOf(j, i)
UpToDateVote == \A i \in Server : UpToDateVoteOf(i)

\* The last commit was, and stays, on the disks of a quorum of the configuration it was counted in.
CommittedIsDurable ==
  LET Holds(j) == IsPrefix(Prefix(committed, lastCommit.index), disk[j].log)
  IN lastCommit.index > 0 =>
       IsQuorum({j \in MembersOf(lastCommit.config) : Holds(j)}, lastCommit.config)

=============================================================================
