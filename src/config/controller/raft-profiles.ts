import type { ConfigReader } from '../engine/reader.ts'
import type { ControllerConfig, RAFT_PROFILES } from './options.ts'

type Times = Pick<
  ControllerConfig['raft'],
  'heartbeatMs' | 'electionTimeoutMs' | 'electionTimeoutMaxMs'
>

/**
 * Times that replace the defaults, by profile. With 200 ms latency each way and 5 % packet loss,
 * `wan` causes no election in ten minutes (test/sim/wan.ts); the disadvantage is that a failover
 * takes 3 to 6 s.
 */
export const raftProfiles: Readonly<Record<(typeof RAFT_PROFILES)[number], Partial<Times>>> = {
  lan: {},
  wan: { heartbeatMs: 500, electionTimeoutMs: 3000, electionTimeoutMaxMs: 6000 },
}

/** Applies the times of the profile, except where the file or the environment sets a value. */
export function withRaftProfile(
  config: ControllerConfig,
  reader: Pick<ConfigReader, 'isGiven' | 'replaceDefault'>,
): ControllerConfig {
  const times = Object.entries(raftProfiles[config.raft.profile]).filter(
    ([name]) => !reader.isGiven(`raft.${name}`),
  )
  for (const [name, value] of times) reader.replaceDefault(`raft.${name}`, String(value))
  return { ...config, raft: { ...config.raft, ...Object.fromEntries(times) } }
}
