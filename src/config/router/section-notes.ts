import type { RouterConfig } from './table.ts'
import { transportsWithoutEffect } from './table-transport.ts'

/**
 * One sentence for each absent section; it names the function that the router lacks without the
 * section.
 */
export function missingSectionNotes(config: RouterConfig): readonly string[] {
  const effects: readonly (readonly [boolean, string])[] = [
    [
      config.identity.ca === null,
      'no identity.ca: no controller is verified, so none is connected',
    ],
    [config.csr === null, 'no csr: the router cannot enroll or renew its enrollment'],
    [config.dialers.length === 0, 'no dialers: the router cannot connect to terminate services'],
    [config.edge === null, 'no edge: fabric only, clients cannot connect to this router'],
    [config.link === null, 'no link: the router neither dials nor accepts other routers'],
    [config.listeners.length === 0, 'no listeners: nothing enters the network at this router'],
  ]
  return effects.flatMap(([isOmitted, effect]) => (isOmitted ? [effect] : []))
}

/** One sentence for each section that is checked but has no effect in this version. */
export function unusedSectionNotes(config: RouterConfig): readonly string[] {
  const others = transportsWithoutEffect(config.transport)
  const sections: readonly (readonly [boolean, string, string])[] = [
    [
      others.length > 0,
      `transport.${others.join(', transport.')}`,
      'this router has no such protocol',
    ],
  ]
  return sections.flatMap(([isThere, name, effect]) =>
    isThere ? [`${name}: checked, and without effect: ${effect}`] : [],
  )
}
