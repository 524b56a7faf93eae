---------------------------- MODULE FlotillaModel ----------------------------
(***************************************************************************)
(* Permits every action of FlotillaRaft, within limits, so that TLC can    *)
(* search for a behavior that violates a guarantee. Intended for           *)
(* -simulate: actions that prevent progress are tried rarely, because      *)
(* random behaviors would otherwise never reach a commit. There are four   *)
(* disks; the last one has no log, and joins by a configuration change.    *)
(***************************************************************************)
EXTENDS FlotillaRaft

CONSTANTS MaxTerm, MaxLog, MaxMessages, MaxWrites

Rarely == RandomElement(1..25) = 1

Disks == {"a", "b", "c", "d"}
Names == [i \in Disks |-> i]
First == {"a", "b", "c"}

Forming == <<[term |-> 1, type |-> "configuration", value |-> 1,
              members |-> [voters |-> First, outgoing |-> {}, learners |-> {}]]>>

ModelInit ==
  /\ currentTerm = [i \in Server |-> IF i \in First THEN 1 ELSE 0]
  /\ votedFor = [i \in Server |-> Nil]
  /\ log = [i \in Server |-> IF i \in First THEN Forming ELSE <<>>]
  /\ state = [i \in Server |-> Follower]
  /\ commitIndex = [i \in Server |-> Len(log[i])]
  /\ matched = commitIndex
  /\ told = [i \in Server |-> Forming[1].members]
  /\ votesGranted = [i \in Server |-> {}]
  /\ matchIndex = [i \in Server |-> [j \in Server |-> 0]]
  /\ led = [i \in Server |-> [term |-> 0, log |-> <<>>]]
  /\ disk = [i \in Server |-> [term |-> currentTerm[i], votedFor |-> Nil, log |-> log[i]]]
  /\ writes = [i \in Server |-> <<>>]
  /\ done = [i \in Server |-> 0]
  /\ pending = [i \in Server |-> {}]
  /\ gated = [i \in Server |-> {}]
  /\ messages = {}
  /\ leaders = {}
  /\ committed = Forming
  /\ committedIn = <<1>>
  /\ lastCommit = [index |-> 0, config |-> NoConfiguration]

\* One write with everything that the disk of server i still lacks.
Lacking(i) ==
  LET d == DiskAt(i, Issued(i))
      same == {k \in 0..Smallest(Len(d.log), Len(log[i])) : Prefix(d.log, k) = Prefix(log[i], k)}
      isHardStateNew == d.term # currentTerm[i] \/ d.votedFor # votedFor[i]
  IN [term |-> IF isHardStateNew THEN currentTerm[i] ELSE 0, votedFor |-> votedFor[i],
      first |-> Max(same) + 1, entries |-> SubSeq(log[i], Max(same) + 1, Len(log[i])), isWhole |-> FALSE]

Flush(i) ==
  LET d == DiskAt(i, Issued(i))
  IN /\ Len(writes[i]) < MaxWrites
     /\ d.term # currentTerm[i] \/ d.votedFor # votedFor[i] \/ d.log # log[i]
     /\ Write(i, Lacking(i))

\* The messages that server i may send for its pending decisions, to any recipient.
Answers(i) ==
  LET said(m, j) ==
        CASE m.mtype = "RequestVoteRequest" ->
               [mtype |-> m.mtype, mterm |-> m.mterm, msource |-> i, mdest |-> j,
                mlastLogTerm |-> m.mlastLogTerm, mlastLogIndex |-> m.mlastLogIndex]
          [] m.mtype = "RequestVoteResponse" ->
               [mtype |-> m.mtype, mterm |-> m.mterm, msource |-> i, mdest |-> m.mdest, mvoteGranted |-> TRUE]
          [] OTHER ->
               [mtype |-> m.mtype, mterm |-> m.mterm, msource |-> i, mdest |-> j, msuccess |-> TRUE,
                mmatchIndex |-> m.mmatchIndex]
  IN {said(m, j) : m \in pending[i], j \in Server \ {i}}

Appends(i) ==
  LET last == Len(log[i])
      Request(j, from, to) ==
        [mtype |-> "AppendEntriesRequest", mterm |-> currentTerm[i], msource |-> i, mdest |-> j,
         mprevLogIndex |-> from, mprevLogTerm |-> TermAt(log[i], from),
         mentries |-> SubSeq(log[i], from + 1, to), mcommitIndex |-> commitIndex[i]]
  IN IF state[i] # Leader THEN {}
     ELSE {Request(j, from, last) : j \in Server \ {i}, from \in 0..last} \union
          {Request(j, from, from + 1) : j \in Server \ {i}, from \in 0..last - 1}

Targets == {[voters |-> v, outgoing |-> o, learners |-> n] :
              v \in {First, First \ {"a"}, First \union {"d"}}, o \in SUBSET Disks, n \in {{}, {"d"}}}

ConfigurationEntry(i, members) ==
  [term |-> currentTerm[i], type |-> "configuration", value |-> Len(log[i]) + 1, members |-> members]

CommandEntry(i) ==
  [term |-> currentTerm[i], type |-> "command", value |-> currentTerm[i], members |-> NoConfiguration]

Deliver(i, m) ==
  LET isLast == ~Rarely
  IN \/ UpdateTerm(i, m)
     \/ HandleRequestVoteRequest(i, m, isLast)
     \/ HandleRequestVoteResponse(i, m, isLast)
     \/ HandleAppendEntriesRequest(i, m, isLast)
     \/ HandleAppendEntriesResponse(i, m, isLast)

Lose(m) ==
  /\ messages' = messages \ {m}
  /\ UNCHANGED <<serverVars, logVars, leaderVars, diskVars, pending, gated, historyVars>>

IsQuiet == \A i \in Server : state[i] = Follower

ModelNext ==
  \E i \in Server :
    \/ currentTerm[i] < MaxTerm /\ i \in MembersOf(Config(i)) /\ (IsQuiet \/ Rarely) /\ Timeout(i)
    \/ BecomeLeader(i)
    \/ Rarely /\ StepDown(i)
    \/ Len(log[i]) < MaxLog /\ Rarely /\ ClientRequest(i, <<CommandEntry(i)>>)
    \/ /\ state[i] = Leader /\ log[i][Len(log[i])].term < currentTerm[i]
       /\ ClientRequest(i, <<CommandEntry(i)>>)
    \/ /\ state[i] = Leader /\ Len(log[i]) < MaxLog
       /\ \E members \in Targets :
            \/ ChangeConfiguration(i, ConfigurationEntry(i, members))
            \/ LeaveJoint(i, ConfigurationEntry(i, members))
    \/ \E index \in 1..Len(log[i]) : AdvanceCommitIndex(i, index)
    \/ Flush(i)
    \/ \E token \in done[i] + 1..Issued(i) : Persisted(i, token)
    \/ /\ Cardinality(messages) < MaxMessages
       /\ \/ \E m \in Answers(i) : Send(i, m, Issued(i), FALSE)
          \/ \E m \in Answers(i) : Rarely /\ Send(i, m, done[i], FALSE)
          \/ \E m \in Appends(i) :
               /\ m \notin messages
               /\ m.mprevLogIndex = matchIndex[i][m.mdest] \/ Rarely
               /\ Send(i, m, 0, FALSE)
    \/ pending[i] # {} /\ DiskAt(i, Issued(i)).log = log[i] /\ Rarely /\ Ready(i)
    \/ \E m \in messages : m.mdest = i /\ Deliver(i, m)
    \/ \E m \in messages : Rarely /\ Lose(m)
    \/ Rarely /\ \E found \in Survivors(i), commit \in 0..1 :
         commit <= Len(found.log) /\ Restart(i, found, 0, commit)

ModelSpec == ModelInit /\ [][ModelNext]_vars

=============================================================================
