import type { HealthReport } from '../../api/parts.ts'
import type { NodeHealth } from '../../ports/node-health.ts'

/**
 * Alive is not the same as in contact: without a leader this controller still answers reads and
 * must not be restarted, and an alarm that leaves its answers good must not take it, with all
 * others that see the same, out of service.
 */
export function healthOf(node: NodeHealth): HealthReport {
  const critical = node.alarms.filter(({ isCritical }) => isCritical)
  const isHealthy = critical.length === 0
  const detail = critical.map(({ text }) => text).join('; ')
  return {
    isHealthy,
    checks: [
      { id: 'state', healthy: isHealthy, ...(isHealthy ? {} : { detail }) },
      { id: 'leader', healthy: node.leaderId !== null },
    ],
    node,
  }
}
