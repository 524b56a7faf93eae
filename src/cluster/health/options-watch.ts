import { create } from '@bufbuild/protobuf'

import { SharedOptionsSchema } from '../../../proto/gen/soft_pb.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { SharedOption } from '../../ports/membership.ts'
import type { OpenSoftTopic } from '../../ports/soft-topics.ts'
import type { NodeId } from '../../raft/types.ts'
import type { AlarmRaiser, OptionDifference } from '../alarm-table.ts'

const KEY = 'self'
/**
 * Maximum length of an option value, because a peer chooses its length. The longest valid value is
 * a trust domain.
 */
const VALUE_CHARACTERS_MAX = 300

/**
 * Publishes the options that must be equal on every controller, and raises an alarm for each member
 * with different values. The alarm is cleared when the values are equal, or when the member has
 * published nothing for the TTL of the topic.
 */
export class OptionsWatch {
  readonly #own: readonly SharedOption[]
  readonly #alarms: AlarmRaiser

  constructor(
    own: readonly SharedOption[],
    topic: Pick<OpenSoftTopic<'options'>, 'publish' | 'onChange'>,
    alarms: AlarmRaiser,
  ) {
    this.#own = own
    this.#alarms = alarms
    topic.onChange((member, _key, message) => this.#compare(member, message?.options ?? []))
    topic.publish(KEY, create(SharedOptionsSchema, { options: own.map((one) => ({ ...one })) }))
  }

  #compare(member: NodeId, theirs: readonly SharedOption[]): void {
    const values = new Map(theirs.map(({ name, value }) => [name, value]))
    // Controllers of different releases may have different options, so only common ones are
    // compared.
    const differences = this.#own.flatMap(({ name, value: own }): OptionDifference[] => {
      const value = values.get(name)
      if (value === undefined || value === own) return []
      return [{ name, own, theirs: printableLine(value, VALUE_CHARACTERS_MAX) }]
    })
    if (differences.length === 0) this.#alarms.clear('OPTIONS_DIFFER', member)
    else this.#alarms.raise('OPTIONS_DIFFER', { member, differences })
  }
}
