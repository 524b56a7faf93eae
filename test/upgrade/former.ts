/** What is upgraded from; its package is in test/releases. */
export const formerRelease = '0.1.0'
/** As docs/upgrading.md installs it. */
export const thisRelease = '0.2.0'
