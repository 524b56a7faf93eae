import { spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { assert } from '../../src/lib/assert.ts'
import type { Recording } from './record.ts'
import { readTrace } from './trace-file.ts'

/** A mistake in the Raft core that must be visible in its traces. */
interface Mutant {
  readonly what: string
  readonly file: string
  /** Each `from` occurs once in the file. */
  readonly changes: readonly (readonly [from: string, to: string])[]
}

export const mutants: Readonly<Record<string, Mutant>> = {
  'double-vote': {
    what: 'a second vote in the same term',
    file: 'src/raft/election.ts',
    changes: [
      [
        'const isFree = state.votedFor === null || state.votedFor === message.from',
        'const isFree = true',
      ],
      [
        'state.setTermAndVote(state.term, message.from)',
        'if (state.votedFor === null) state.setTermAndVote(state.term, message.from)',
      ],
    ],
  },
  'vote-for-a-shorter-log': {
    what: 'a vote for a candidate whose log is less up to date',
    file: 'src/raft/election.ts',
    changes: [
      [
        'const isGrantable = state.holdsVote && isLogUpToDate(message.last, voteThresholdPosition(state))',
        'const isGrantable = state.holdsVote || isLogUpToDate(message.last, voteThresholdPosition(state))',
      ],
    ],
  },
  'vote-before-the-disk': {
    what: 'a vote that is sent before it is on disk',
    file: 'src/raft/election.ts',
    changes: [
      [
        'state.send(message.from, body, state.durability.hardStateToken)',
        'state.send(message.from, body, 0)',
      ],
    ],
  },
  'old-term-commit': {
    what: 'an entry of an earlier term that is committed by counting',
    file: 'src/raft/commit.ts',
    changes: [
      [
        'if (reached <= state.commit || state.log.termAt(reached) !== state.term) return',
        'if (reached <= state.commit) return',
      ],
    ],
  },
  'leader-counts-its-memory': {
    what: 'a leader that counts entries that are not on its disk yet',
    file: 'src/raft/commit.ts',
    changes: [
      [
        'id === state.id ? state.durability.durableIndex :',
        'id === state.id ? state.log.lastIndex :',
      ],
    ],
  },
  'acknowledged-before-the-disk': {
    what: 'entries that are acknowledged before they are on disk',
    file: 'src/raft/follow.ts',
    changes: [
      ['state.send(leader, body, state.durability.tokenFor(index))', 'state.send(leader, body, 0)'],
    ],
  },
  'commit-beyond-the-match': {
    what: 'a follower that commits entries that the leader may not have',
    file: 'src/raft/follow.ts',
    changes: [
      [
        'raiseCommitIndex(state, Math.min(leaderCommit, state.matched))',
        'raiseCommitIndex(state, Math.min(leaderCommit, state.log.lastIndex))',
      ],
      [
        'raiseCommitIndex(state, position.index)',
        'raiseCommitIndex(state, Math.min(position.index, state.log.lastIndex))',
      ],
    ],
  },
  'truncates-what-it-has': {
    what: 'a late request that truncates entries that were appended after it',
    file: 'src/raft/follow.ts',
    changes: [
      [
        'if (first === undefined) return\n  if (first.index',
        'if (first === undefined) {\n    const last = entries.at(-1)\n    if (last !== undefined && last.index >= state.commit && last.index < log.lastIndex) truncate(state, last.index + 1)\n    return\n  }\n  if (first.index',
      ],
    ],
  },
  'new-half-alone': {
    what: 'a joint configuration that needs only a majority of the new voters',
    file: 'src/raft/quorum.ts',
    changes: [['    majorityValue(configuration.outgoingVoters, valueOf),\n', '']],
  },
  'forgets-its-vote': {
    what: 'a start that does not read the vote',
    file: 'src/raft/core.ts',
    changes: [['votedFor: found.hardState.votedFor,', 'votedFor: null,']],
  },
}

/**
 * Makes the mistake in a copy of the sources and runs one seed after the other, until a check
 * rejects the run.
 */
export async function recordMutant(
  name: string,
  seeds: readonly number[],
  runMs: number,
): Promise<Recording> {
  const mutant = mutants[name]
  assert(mutant !== undefined, `no mutant ${name}; there are: ${Object.keys(mutants).join(', ')}`)
  const root = resolve(import.meta.dirname, '../..')
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-mutant-'))
  try {
    for (const room of [
      'src',
      'proto',
      'test/raft',
      'test/sim',
      'test/tla',
      'test/cluster',
      'test/support',
      'bench',
    ]) {
      mkdirSync(join(folder, room), { recursive: true })
      cpSync(join(root, room), join(folder, room), { recursive: true })
    }
    cpSync(join(root, 'package.json'), join(folder, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    mutate(join(folder, mutant.file), mutant)
    const out = join(folder, 'trace.ndjson')
    const cli = join(folder, 'test/tla/validate.ts')
    const range = ['--first', `${seeds[0] ?? 1}`, '--seeds', `${seeds.length}`]
    const options = ['--record', out, '--until-failure', ...range, '--run-ms', `${runMs}`]
    const child = spawn(process.execPath, [cli, ...options], { stdio: 'inherit' })
    const [code] = (await once(child, 'exit')) as [number | null]
    assert(code === 0, `the run of ${name} ended with ${code}`)
    return readTrace(out)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function mutate(path: string, { changes }: Mutant): void {
  let text = readFileSync(path, 'utf8')
  for (const [from, to] of changes) {
    assert(text.split(from).length === 2, `${path} has this once: ${from}`)
    text = text.replace(from, to)
  }
  writeFileSync(path, text)
}
