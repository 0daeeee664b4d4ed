//! Types that several rooms of Horchestra share and users write.
