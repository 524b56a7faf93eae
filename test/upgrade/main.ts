// `make upgrade`: upgrades three controllers of the last release to this one under load, as
// docs/operate/upgrade.md says.
import { formerRelease, thisRelease } from './former.ts'
import { UpgradeDrill } from './drill.ts'
import { downgradeIsRefused, goBackOnce, hasNewLevel, upgradeLast, upgradeTwo } from './steps.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'

await using drill = await UpgradeDrill.begin(formerRelease, thisRelease)
async function refuseDowngrade(of: UpgradeDrill): Promise<void> {
  await downgradeIsRefused(of, FEATURE_LEVEL)
}
const steps = [upgradeTwo, goBackOnce, upgradeLast, ...(hasNewLevel ? [refuseDowngrade] : [])]
for (const step of steps) {
  const startedAt = performance.now()
  await step(drill)
  console.log(`${step.name}: ${Math.round(performance.now() - startedAt)} ms`)
}
console.log(`${drill.writes} writes, none refused; digests equal after each step`)
