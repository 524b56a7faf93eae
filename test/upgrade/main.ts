// `make upgrade`: three controllers of the last release are upgraded to this one under load, as docs/upgrading.md says it.
import { formerRelease, thisRelease } from './former.ts'
import { UpgradeDrill } from './drill.ts'
import { downgradeIsRefused, goBackOnce, upgradeLast, upgradeTwo } from './steps.ts'

await using drill = await UpgradeDrill.begin(formerRelease, thisRelease)
for (const step of [upgradeTwo, goBackOnce, upgradeLast, downgradeIsRefused]) {
  const startedAt = performance.now()
  await step(drill)
  console.log(`${step.name}: ${Math.round(performance.now() - startedAt)} ms`)
}
console.log(`${drill.writes} writes, none refused; digests equal after each step`)
