import { create, toBinary } from '@bufbuild/protobuf'

import {
  CommandKind,
  FeatureLevelRaiseSchema,
  type RestoreBegin,
  RestoreBeginSchema,
  RestoreChunkSchema,
  type RestoreEnd,
  RestoreEndSchema,
} from '../../../proto/gen/command_pb.ts'
import { type RestoreContent, splitRestoreContent } from '../../../src/backup/restore-content.ts'
import { removeSessions } from '../../../src/fsm/restored-state.ts'
import type { Outcome } from '../../../src/ports/proposer.ts'
import { formedState, type LogWriter } from './log.ts'
import type { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

/** A new cluster at the feature level that restores need. */
export function restorableState(): { readonly state: ClusterState; readonly log: LogWriter } {
  const made = formedState()
  const message = create(FeatureLevelRaiseSchema, { level: 2 })
  made.log.command(CommandKind.FEATURE_LEVEL_RAISE, toBinary(FeatureLevelRaiseSchema, message))
  return made
}

/** Records that a backup of this state would restore. Removes the sessions of the state. */
export function contentOf(state: ClusterState): RestoreContent {
  removeSessions(state)
  return splitRestoreContent(state)
}

type Given<M> = Partial<Omit<M, '$typeName' | '$unknown'>>

/** A restore, with the commands that a controller proposes, one at a time. */
export class Restore {
  readonly #log: LogWriter
  readonly #content: RestoreContent
  readonly id: string

  constructor(log: LogWriter, content: RestoreContent, id = 'one') {
    this.#log = log
    this.#content = content
    this.id = id
  }

  #outcome(kind: CommandKind, payload: Uint8Array): Outcome {
    const { outcome } = this.#log.command(kind, payload, { level: 2 })
    if (outcome === null) throw new Error('the command was passed over')
    return outcome
  }

  begin(given: Given<RestoreBegin> = {}): Outcome {
    const { chunks, bytes, sha256 } = this.#content
    const message = create(RestoreBeginSchema, {
      id: this.id,
      chunks: chunks.length,
      bytes: String(bytes),
      clusterId: 'cluster',
      sha256: Buffer.from(sha256, 'hex'),
      featureLevel: 2,
      ...given,
    })
    return this.#outcome(CommandKind.RESTORE_BEGIN, toBinary(RestoreBeginSchema, message))
  }

  chunk(number: number, bytes?: Uint8Array): Outcome {
    const { id } = this
    const chunk = this.#content.chunks[number]
    const message = create(RestoreChunkSchema, {
      id,
      number,
      endsBlock: chunk?.endsBlock ?? true,
      bytes: bytes ?? chunk?.bytes ?? new Uint8Array(1),
    })
    return this.#outcome(CommandKind.RESTORE_CHUNK, toBinary(RestoreChunkSchema, message))
  }

  stage(): void {
    this.begin()
    this.#content.chunks.forEach((_, number) => this.chunk(number))
  }

  end(given: Given<RestoreEnd> = {}): Outcome {
    const message = create(RestoreEndSchema, {
      id: this.id,
      sha256: Buffer.from(this.#content.sha256, 'hex'),
      reason: 'a backup',
      ...given,
    })
    return this.#outcome(CommandKind.RESTORE_END, toBinary(RestoreEndSchema, message))
  }
}
