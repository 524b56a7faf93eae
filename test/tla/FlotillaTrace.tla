---------------------------- MODULE FlotillaTrace ----------------------------
(***************************************************************************)
(* Constrains FlotillaRaft to one recorded run: step l of the behavior     *)
(* must be the action that event l names, with its arguments, and must     *)
(* lead to the state that the event reports. Every event permits at most   *)
(* one next state. So a run that is explained to its end has               *)
(* Len(Trace) + 1 states, and the first event that no action explains is   *)
(* the one after the last state reached. TraceData is generated from the   *)
(* run.                                                                    *)
(***************************************************************************)
EXTENDS FlotillaRaft, TraceData

VARIABLE l

\* Converts the values of a recorded run to those of FlotillaRaft.

SetOf(list) == {list[k] : k \in 1..Len(list)}

MembersIn(x) ==
  [voters |-> SetOf(x.voters), outgoing |-> SetOf(x.outgoing), learners |-> SetOf(x.learners)]

\* <<term, type, value>>, and for a configuration its members.
EntryIn(x) ==
  [term |-> x[1], type |-> x[2], value |-> x[3],
   members |-> IF Len(x) = 4 THEN MembersIn(x[4]) ELSE NoConfiguration]
EntriesIn(list) == [k \in 1..Len(list) |-> EntryIn(list[k])]

MessageIn(x) == IF "mentries" \in DOMAIN x THEN [x EXCEPT !.mentries = EntriesIn(@)] ELSE x

TraceServer == {TraceServers[k][1] : k \in 1..Len(TraceServers)}
TraceName == [i \in TraceServer |->
  LET k == CHOOSE k \in 1..Len(TraceServers) : TraceServers[k][1] = i IN TraceServers[k][2]]
Formed == EntriesIn(TraceFormed)

----------------------------------------------------------------------------

FoundBy(i, e) ==
  {d \in Survivors(i) : /\ d.term = e.term /\ d.votedFor = e.votedFor
                        /\ Len(d.log) = e.lastIndex /\ LastTerm(d.log) = e.lastTerm}

Explains(i, e) ==
  CASE e.action = "Join" ->
         Join(i, [term |-> e.term, votedFor |-> e.votedFor,
                  log |-> Prefix(committed, e.base) \o EntriesIn(e.entries)],
              e.applied, e.commit, MembersIn(e.told))
    [] e.action = "Restart" ->
         \E found \in FoundBy(i, e) : Restart(i, found, e.applied, e.commit)
    [] e.action = "UpdateTerm" -> UpdateTerm(i, MessageIn(e.message))
    [] e.action = "UpdateTermBySnapshot" -> UpdateTermBySnapshot(i, e.term)
    [] e.action = "Timeout" -> Timeout(i)
    [] e.action = "StepDown" -> StepDown(i)
    [] e.action = "HandleRequestVoteRequest" ->
         HandleRequestVoteRequest(i, MessageIn(e.message), e.isLast)
    [] e.action = "HandleRequestVoteResponse" ->
         HandleRequestVoteResponse(i, MessageIn(e.message), e.isLast)
    [] e.action = "BecomeLeader" -> BecomeLeader(i)
    [] e.action = "ClientRequest" -> ClientRequest(i, EntriesIn(e.entries))
    [] e.action = "ChangeConfiguration" -> ChangeConfiguration(i, EntryIn(e.entries[1]))
    [] e.action = "LeaveJoint" -> LeaveJoint(i, EntryIn(e.entries[1]))
    [] e.action = "AdvanceCommitIndex" -> AdvanceCommitIndex(i, e.index)
    [] e.action = "HandleAppendEntriesRequest" ->
         HandleAppendEntriesRequest(i, MessageIn(e.message), e.isLast)
    [] e.action = "HandleHeartbeat" -> HandleHeartbeat(i, MessageIn(e.message), e.isLast)
    [] e.action = "HandleAppendEntriesResponse" ->
         HandleAppendEntriesResponse(i, MessageIn(e.message), e.isLast)
    [] e.action = "InstallSnapshot" -> InstallSnapshot(i, e.index, e.term, e.snapshotTerm)
    [] e.action = "Send" -> Send(i, MessageIn(e.message), e.token, e.isLost)
    [] e.action = "Write" ->
         Write(i, [term |-> e.term, votedFor |-> e.votedFor, first |-> e.first,
                   entries |-> EntriesIn(e.entries), isWhole |-> FALSE])
    [] e.action = "Reset" ->
         Write(i, [term |-> 0, votedFor |-> Nil, first |-> 1,
                   entries |-> Prefix(committed, e.index), isWhole |-> TRUE])
    [] e.action = "Persisted" -> Persisted(i, e.token)
    [] e.action = "Ready" -> Ready(i)
    [] OTHER -> FALSE

\* An event reports the state only at the end of a step of the core; between, only the actions determine the state.
IsAsReported(i, e) ==
  "after" \in DOMAIN e =>
    /\ currentTerm'[i] = e.after.term
    /\ votedFor'[i] = e.after.votedFor
    /\ state'[i] = e.after.state
    /\ Len(log'[i]) = e.after.lastIndex
    /\ LastTerm(log'[i]) = e.after.lastTerm
    /\ commitIndex'[i] = e.after.commit
    /\ "config" \in DOMAIN e.after => ConfigOf(log'[i], told'[i]) = MembersIn(e.after.config)
    /\ "match" \in DOMAIN e.after =>
         \A k \in 1..Len(e.after.match) : matchIndex'[i][e.after.match[k][1]] = e.after.match[k][2]

TraceInit == l = 1 /\ InitWith(Formed)

TraceNext ==
  /\ l <= Len(Trace)
  /\ l' = l + 1
  /\ Explains(Trace[l].server, Trace[l])
  /\ IsAsReported(Trace[l].server, Trace[l])

\* The position in the run identifies the state, so TLC need not compare states by their large content.
TraceView == l

TraceSpec == TraceInit /\ [][TraceNext]_<<l, vars>>

----------------------------------------------------------------------------
\* The guarantees of FlotillaRaft, checked only after events that can violate them.

Last == Trace[l - 1]
LastIs(actions) == l > 1 /\ Last.action \in actions

LogActions == {"Join", "Restart", "ClientRequest", "ChangeConfiguration", "LeaveJoint",
               "HandleAppendEntriesRequest", "InstallSnapshot"}
CommitActions == {"AdvanceCommitIndex", "HandleHeartbeat"}

TraceLogMatching == LastIs(LogActions) => LogMatchingOf(Last.server)
TraceLeaderCompleteness ==
  /\ LastIs({"BecomeLeader"}) => LeaderCompletenessOf(Last.server)
  \* The leader of an earlier term may commit entries that a later leader must have.
  /\ LastIs({"AdvanceCommitIndex"}) =>
       \A i \in Server : i # Last.server => LeaderCompletenessOf(i)
TraceStateMachineSafety == LastIs(LogActions \union CommitActions) => StateMachineSafetyOf(Last.server)
TraceUpToDateVote == LastIs(LogActions \union CommitActions) => UpToDateVoteOf(Last.server)
TraceCommittedIsDurable ==
  LastIs({"AdvanceCommitIndex", "Persisted", "Restart"}) => CommittedIsDurable

=============================================================================
