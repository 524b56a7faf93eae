import type { RouterConfig } from './table.ts'
import { transportsWithoutEffect } from './table-transport.ts'

/**
 * One note for each absent or empty key without which the router lacks a function; the note names
 * that function.
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

/** The notes of absent and of unused sections, for the inspection of a running router. */
export function sectionNotes(config: RouterConfig): {
  readonly omitted: readonly string[]
  readonly withoutData: readonly string[]
} {
  return { omitted: missingSectionNotes(config), withoutData: unusedSectionNotes(config) }
}

/** All notes on a valid configuration: for the log, `router check` and debug bundles. */
export function routerConfigNotes(config: RouterConfig): readonly string[] {
  return [...missingSectionNotes(config), ...unusedSectionNotes(config), ...openPortNotes(config)]
}

/** One sentence for each tunnel that opens ports for services on all addresses of the host. */
function openPortNotes(config: RouterConfig): readonly string[] {
  return config.listeners.flatMap(({ binding, options }, index) => {
    if (binding !== 'tunnel' || options['mode'] !== 'proxy') return []
    const services = options['services']
    if (!Array.isArray(services) || services.length === 0) return []
    return [
      `listeners[${index}].options.services: these ports are open on all addresses of this host, so other hosts use the services as this router, without log-in; to open a port for this host alone, give the service a config proxy.v1 with the binding 127.0.0.1`,
    ]
  })
}

/**
 * One note that names the sections of `transport` for protocols that this router does not have;
 * none if there is no such section.
 */
function unusedSectionNotes(config: RouterConfig): readonly string[] {
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
