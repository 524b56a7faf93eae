---------------------------- MODULE FlotillaRaft ----------------------------
(***************************************************************************)
(* The actions that the consensus core may take, named as in the public    *)
(* Raft specification: Timeout, RequestVote, BecomeLeader, ClientRequest,  *)
(* AdvanceCommitIndex, the message handlers, Restart. This module adds the *)
(* content of each disk and the writes that are not durable yet, joint     *)
(* configurations, snapshots, and disks as members: a name that returns    *)
(* with another disk is another server here. It omits what safety does not *)
(* depend on: PreVote, rounds of reads, the pace of replication            *)
(* (nextIndex), and compaction, so a log here is never shortened at its    *)
(* start.                                                                  *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
  Server,    \* the disks; a disk that was erased or rolled back is another server
  Name       \* [Server -> the name of the disk's node in messages]

Nil == ""
Follower == "Follower"
Candidate == "Candidate"
Leader == "Leader"

VARIABLES
  \* State of a server that a crash deletes and a restart reads from the disk.
  currentTerm, votedFor, log,
  \* State of a server that a crash deletes.
  state, commitIndex, votesGranted, matchIndex,
  matched,      \* the index up to which the log is known to equal that of this term's leader
  told,         \* the configuration of a server that does not have a log yet
  led,          \* the last leadership that ended: its term, and the log at its end
  \* The durable content of each disk, the writes that are not durable yet, in order, and the number of durable writes since
  \* the last restart.
  disk, writes, done,
  \* Decisions whose messages were not sent yet; messages that wait for a write to be durable; messages in the network.
  pending, gated, messages,
  \* History: the leader of each term; the sequence of all committed entries, and the term in which each was committed;
  \* the index and the configuration of the last commit.
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

\* The index of the last configuration in a log; 0 if the log has none.
ConfigIndexOf(entries) ==
  LET places == {k \in 1..Len(entries) : entries[k].type = "configuration"}
  IN IF places = {} THEN 0 ELSE Max(places)
ConfigOf(entries, before) ==
  LET k == ConfigIndexOf(entries) IN IF k = 0 THEN before ELSE entries[k].members

\* A configuration is in force as soon as it is appended (Raft paper 6).
ConfigIndex(i) == ConfigIndexOf(log[i])
Config(i) == ConfigOf(log[i], told[i])

MembersOf(config) == config.voters \union config.outgoing \union config.learners
IsJoint(config) == config.outgoing # {}
IsMajority(part, whole) == Cardinality(part \intersect whole) * 2 > Cardinality(whole)

\* A majority of the voters and, in a joint configuration, also a majority of the old voters.
IsQuorum(part, config) ==
  /\ IsMajority(part, config.voters)
  /\ IsJoint(config) => IsMajority(part, config.outgoing)

----------------------------------------------------------------------------
\* Disks

\* The disk d after write w, of whose entries the first `count` were written. term 0: term and vote do not change.
\* first: the index of the first entry that is replaced.
Wrote(d, w, count) ==
  [term |-> IF w.term = 0 THEN d.term ELSE w.term,
   votedFor |-> IF w.term = 0 THEN d.votedFor ELSE w.votedFor,
   log |-> IF count = 0 THEN d.log ELSE Prefix(d.log, w.first - 1) \o Prefix(w.entries, count)]

RECURSIVE After(_, _)
After(d, queue) ==
  IF queue = <<>> THEN d ELSE After(Wrote(d, Head(queue), Len(Head(queue).entries)), Tail(queue))

\* The content of the disk once the first `token` writes since the last restart are durable.
DiskAt(i, token) == After(disk[i], Prefix(writes[i], token - done[i]))
Issued(i) == done[i] + Len(writes[i])

\* The possible contents of a disk after a crash: the first writes are complete, and of the next one, term and vote and its
\* first entries may be durable. A write that replaces the whole log because of a snapshot is durable either completely or
\* not at all.
Survivors(i) ==
  {DiskAt(i, t) : t \in done[i]..Issued(i)} \union
  UNION {{Wrote(DiskAt(i, t), writes[i][t - done[i] + 1], n) :
            n \in 0..Len(writes[i][t - done[i] + 1].entries)} :
          t \in {t \in done[i]..Issued(i) - 1 : ~writes[i][t - done[i] + 1].isWhole}}

\* A write is issued to the disk. Ready checks that it contains what had to be written.
Write(i, w) ==
  /\ w.first <= Len(DiskAt(i, Issued(i)).log) + 1
  /\ writes' = [writes EXCEPT ![i] = Append(@, w)]
  /\ UNCHANGED <<serverVars, logVars, leaderVars, disk, done, messageVars, historyVars>>

\* The disk reports durable writes. Messages that waited for them are sent.
Persisted(i, token) ==
  /\ token \in done[i]..Issued(i)
  /\ disk' = [disk EXCEPT ![i] = DiskAt(i, token)]
  /\ writes' = [writes EXCEPT ![i] = SubSeq(@, token - done[i] + 1, Len(@))]
  /\ done' = [done EXCEPT ![i] = token]
  /\ messages' = messages \union {g.message : g \in {g \in gated[i] : g.token <= token}}
  /\ gated' = [gated EXCEPT ![i] = {g \in @ : g.token > token}]
  /\ UNCHANGED <<serverVars, logVars, leaderVars, pending, historyVars>>

\* The end of a turn: once all issued writes are durable, the disk has the same content as the server.
Ready(i) ==
  /\ LET d == DiskAt(i, Issued(i))
     IN d.term = currentTerm[i] /\ d.votedFor = votedFor[i] /\ d.log = log[i]
  /\ pending' = [pending EXCEPT ![i] = {}]
  /\ UNCHANGED <<serverVars, logVars, leaderVars, diskVars, gated, messages, historyVars>>

----------------------------------------------------------------------------
\* Messages

\* What a message states about its sender's disk must be true when the message is sent.
IsPromiseKept(i, m, d) ==
  /\ d.term >= m.mterm
  /\ m.mtype = "RequestVoteRequest" => d.term > m.mterm \/ d.votedFor = Name[i]
  /\ (m.mtype = "RequestVoteResponse" /\ m.mvoteGranted) => d.term > m.mterm \/ d.votedFor = m.mdest
  /\ (m.mtype = "AppendEntriesResponse" /\ m.msuccess /\ currentTerm[i] = m.mterm) =>
       /\ Len(d.log) >= m.mmatchIndex
       /\ Prefix(d.log, m.mmatchIndex) = Prefix(log[i], m.mmatchIndex)

\* The log of server i as leader of this term: its current log, or its log when that leadership ended.
LogOfTerm(i, term) ==
  IF state[i] = Leader /\ currentTerm[i] = term THEN log[i] ELSE led[i].log
HasLed(i, term) == (state[i] = Leader /\ currentTerm[i] = term) \/ led[i].term = term

\* Whether the actions so far permit this message. A refusal states only a term.
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

\* A message is sent once the first `token` writes are durable. isLost: it never arrives.
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

\* A message is removed when it arrives for the last time; before that, it may arrive again.
Forget(m, isLast) == messages' = IF isLast THEN messages \ {m} ELSE messages

Answer(i, m) == pending' = [pending EXCEPT ![i] = @ \union {m}]

----------------------------------------------------------------------------
\* Terms and elections

\* The end of a leadership is recorded, because messages of this leadership may still be sent.
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

\* The message remains in the network: the server handles it after this change, in the message's term.
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

\* A timeout is possible at any time: its moment affects only liveness, as do PreVote and leadership transfers.
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

\* Possible at any time, for example after a lost election or without contact to a quorum.
StepDown(i) ==
  /\ state[i] # Follower
  /\ state' = [state EXCEPT ![i] = Follower]
  /\ GiveUp(i)
  /\ UNCHANGED <<currentTerm, votedFor, logVars, votesGranted, matchIndex, diskVars, messageVars, historyVars>>

\* Grants a vote. A refusal is possible for any reason and changes nothing. The vote may be granted again to the same
\* candidate.
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

\* The server's own vote counts once it is durable.
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

\* The match index of a server that the new configuration omits is reset to 0, in case the server returns.
AppendConfiguration(i, entry) ==
  /\ state[i] = Leader
  /\ entry.term = currentTerm[i] /\ entry.type = "configuration"
  /\ log' = [log EXCEPT ![i] = Append(@, entry)]
  /\ matchIndex' = [matchIndex EXCEPT ![i] =
       [j \in Server |-> IF j \in MembersOf(entry.members) THEN @[j] ELSE 0]]
  /\ UNCHANGED <<serverVars, commitIndex, matched, told, votesGranted, led, diskVars, messageVars, historyVars>>

\* The old half of a joint configuration is the voters, or, if a voter has another disk now, the other voters and this disk;
\* then the new half consists of exactly the other voters.
IsOldHalf(outgoing, voters, new) ==
  \/ outgoing = voters
  \/ /\ {Name[j] : j \in outgoing} = {Name[j] : j \in voters}
     /\ Cardinality(outgoing \ voters) = 1
     /\ new = outgoing \intersect voters

\* Every change begins with a joint configuration. It requires that an entry of the leader's term is committed and that no
\* other change is in progress.
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

\* The leader counts disks, its own like any other, and commits only an entry of its own term (Raft paper 5.4.2).
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

\* Entries are replaced only from the first one that differs (Raft paper, figure 2).
Merge(entries, previous, news) ==
  LET other == {k \in 1..Len(news) : TermAt(entries, previous + k) # news[k].term}
  IN IF other = {} THEN entries
     ELSE Prefix(entries, previous + Min(other) - 1) \o SubSeq(news, Min(other), Len(news))

\* The commit index follows the leader's at most to the index up to which the log is known to equal the leader's log.
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

\* A snapshot contains only committed entries, so one from the leader of an earlier term is valid, too.
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

\* found: the content of the disk after the crash. applied: the index of the last entry that the state on the same disk
\* contains; if the log does not contain this entry, it is replaced. commit: the commit index after the restart.
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

\* A disk that did not exist before: empty, or an old copy of another disk.
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
\* Guarantees. Each compares one server with all others, because each event of a trace changes only one server.

ElectionSafety == \A a, b \in leaders : a[1] = b[1] => a = b

\* If two logs have entries with the same index and term, the logs are equal up to and including these entries.
RECURSIVE LastAlike(_, _, _)
LastAlike(a, b, k) == IF k = 0 \/ TermAt(a, k) = TermAt(b, k) THEN k ELSE LastAlike(a, b, k - 1)

LogMatchingOf(i) ==
  \A j \in Server \ {i} :
    LET alike == LastAlike(log[i], log[j], Smallest(Len(log[i]), Len(log[j])))
    IN Prefix(log[i], alike) = Prefix(log[j], alike)
LogMatching == \A i \in Server : LogMatchingOf(i)

\* Entries that were committed in a term are in the log of every leader of a later term.
LeaderCompletenessOf(i) ==
  state[i] = Leader =>
    \A k \in 1..Len(committed) :
      committedIn[k] < currentTerm[i] => k <= Len(log[i]) /\ log[i][k] = committed[k]
LeaderCompleteness == \A i \in Server : LeaderCompletenessOf(i)

\* The entries up to a server's commit index are a prefix of the sequence of all committed entries.
StateMachineSafetyOf(i) ==
  /\ commitIndex[i] <= Len(log[i])
  /\ commitIndex[i] <= Len(committed)
  /\ Prefix(log[i], commitIndex[i]) = Prefix(committed, commitIndex[i])
StateMachineSafety == \A i \in Server : StateMachineSafetyOf(i)

\* A server whose log is up to date enough for j's vote has all entries up to j's commit index.
IsAsUpToDate(i, j) ==
  \/ LastTerm(log[i]) > LastTerm(log[j])
  \/ LastTerm(log[i]) = LastTerm(log[j]) /\ Len(log[i]) >= Len(log[j])
HasAllOf(i, j) == IsPrefix(Prefix(log[j], commitIndex[j]), log[i])
UpToDateVoteOf(i) ==
  \A j \in Server \ {i} :
    /\ IsAsUpToDate(i, j) => HasAllOf(i, j)
    /\ IsAsUpToDate(j, i) => HasAllOf(j, i)
UpToDateVote == \A i \in Server : UpToDateVoteOf(i)

\* The entries of the last commit are durable on a quorum of the configuration in which they were counted.
CommittedIsDurable ==
  LET Holds(j) == IsPrefix(Prefix(committed, lastCommit.index), disk[j].log)
  IN lastCommit.index > 0 =>
       IsQuorum({j \in MembersOf(lastCommit.config) : Holds(j)}, lastCommit.config)

=============================================================================
